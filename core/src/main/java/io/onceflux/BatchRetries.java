package io.onceflux;

import io.onceflux.postgres.MissingPartitionException;

/**
 * How several messages have failed together. What may be the fault of one of them is tried in smaller parts; what is nobody's is
 * tried again as it is, but not for ever: one message that is never alone could hold all of them.
 */
final class BatchRetries implements Judge {

    private final FailurePolicy policy;
    private boolean conflicted;
    private int holds;
    private int holdsWithoutOutage;

    BatchRetries(FailurePolicy policy) {
        this.policy = policy;
    }

    @Override
    public Verdict judge(FailureKind kind, Throwable error, boolean databaseAnswers) {
        return switch (kind) {
            case CONFLICT -> conflict();
            case INFRASTRUCTURE, BROKEN_SETUP ->
                Causes.has(error, MissingPartitionException.class)
                        ? Verdict.split(kind) // The others have theirs.
                        : hold(kind, !databaseAnswers || NothingRan.isSaidBy(error));
            case PERMANENT, EFFECT -> Verdict.split(kind);
        };
    }

    /** Met twice, it is likely one key that another transaction holds: the others need not wait for it. */
    private Verdict conflict() {
        boolean again = conflicted;
        conflicted = true;
        return again
                ? Verdict.split(FailureKind.CONFLICT)
                : Verdict.retry(
                        FailureKind.CONFLICT,
                        policy.backoff(FailureKind.CONFLICT).atOnce());
    }

    private Verdict hold(FailureKind kind, boolean outage) {
        holdsWithoutOutage += outage ? 0 : 1;
        return holdsWithoutOutage > 1
                ? Verdict.split(kind)
                : Verdict.hold(kind, policy.backoff(kind).after(++holds));
    }
}
