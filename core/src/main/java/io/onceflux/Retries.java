package io.onceflux;

import io.onceflux.AttemptConnection.UnknownCommitException;
import io.onceflux.Message.UnusableMessageException;
import java.time.Duration;
import java.util.EnumMap;
import java.util.Map;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/** How one message has failed so far, alone in its transaction. */
final class Retries implements Judge {

    /** A message may carry a stale plan of each connection that it meets; more often than this, the statement is at fault. */
    private static final int MOST_STALE_PLANS = 10;

    /** So long a database may come and go before a message is suspected on no other evidence. */
    private static final Duration FLAPPING = Duration.ofMinutes(5);

    private final @Nullable MessageKey key;
    private final boolean callerWaits;
    private final FailurePolicy policy;
    private final Progress progress;
    private final BooleanSupplier snapshotIsolation;
    private final LongSupplier nowMillis;

    private int effectFailures;
    private int conflicts;
    private int stalePlans;
    private long firstConflictAt;
    private boolean snapshotConflictSeen;
    private final Map<FailureKind, Integer> holds = new EnumMap<>(FailureKind.class);
    private int aloneInARow;
    private long firstWithoutOutageAt;
    private boolean noOutageSince;
    private long commitsAtLastHold;
    private long effectsAtLastHold;

    /**
     * @param key the message's key, or null if it has no usable one
     * @param callerWaits whether somebody waits for the answer: such a message is nobody's sign of a broken set-up, and never a dead
     *     letter
     */
    Retries(
            @Nullable MessageKey key,
            boolean callerWaits,
            FailurePolicy policy,
            Progress progress,
            BooleanSupplier snapshotIsolation,
            LongSupplier nowMillis) {
        this.key = key;
        this.callerWaits = callerWaits;
        this.policy = policy;
        this.progress = progress;
        this.snapshotIsolation = snapshotIsolation;
        this.nowMillis = nowMillis;
    }

    @Override
    public Verdict judge(FailureKind kind, Throwable error, boolean databaseAnswers) {
        if (kind != FailureKind.INFRASTRUCTURE && kind != FailureKind.BROKEN_SETUP) {
            aloneInARow = 0;
        }
        return switch (kind) {
            case CONFLICT -> conflict(error);
            case INFRASTRUCTURE, BROKEN_SETUP -> holdUnlessAlone(kind, error, databaseAnswers);
            case PERMANENT -> isSnapshotConflict(error) ? conflict(error) : giveUpUnlessOneOfMany(kind, error);
            case EFFECT -> effect(error);
        };
    }

    private boolean isSnapshotConflict(Throwable error) {
        boolean first = !snapshotConflictSeen
                && snapshotIsolation.getAsBoolean()
                && SqlStates.mayBeConflictUnderSnapshot(SqlStates.stateOf(error));
        snapshotConflictSeen |= first;
        return first;
    }

    private Verdict conflict(Throwable error) {
        if (conflicts++ == 0) {
            firstConflictAt = nowMillis.getAsLong();
            return Verdict.retry(
                    FailureKind.CONFLICT, policy.backoff(FailureKind.CONFLICT).atOnce());
        }
        if (SqlStates.STALE_PLAN.equals(SqlStates.stateOf(error)) && ++stalePlans > MOST_STALE_PLANS) {
            return effect(error);
        }
        long since = nowMillis.getAsLong() - firstConflictAt;
        return since < policy.conflictTimeout().toMillis()
                ? Verdict.retry(FailureKind.CONFLICT, pause(FailureKind.CONFLICT, conflicts - 1))
                : effect(error);
    }

    private Duration pause(FailureKind kind, int failures) {
        return policy.backoff(kind).after(failures);
    }

    private Verdict effect(Throwable error) {
        effectFailures++;
        return effectFailures < policy.maxAttempts()
                ? Verdict.retry(FailureKind.EFFECT, pause(FailureKind.EFFECT, effectFailures))
                : giveUpUnlessOneOfMany(FailureKind.EFFECT, error);
    }

    private Verdict holdUnlessAlone(FailureKind kind, Throwable error, boolean databaseAnswers) {
        boolean first = holds.isEmpty();
        boolean othersCommit = !first && progress.commits() > commitsAtLastHold;
        boolean othersApply = !first && progress.effects() > effectsAtLastHold;
        commitsAtLastHold = progress.commits();
        effectsAtLastHold = progress.effects();
        if (NothingRan.isSaidBy(error)) {
            aloneInARow = 0; // Nothing of the message has run.
            noOutageSince = false;
        } else if (Causes.has(error, UnknownCommitException.class)) {
            aloneInARow += othersCommit ? 1 : 0;
        } else if (kind == FailureKind.BROKEN_SETUP) {
            aloneInARow += othersApply ? 1 : 0; // A duplicate commits, but shows nothing of the effect's tables.
        } else if (!databaseAnswers) {
            aloneInARow = 0;
            noOutageSince = false;
        } else {
            aloneInARow += othersCommit || isAlone(error) ? 1 : 0;
        }
        return aloneInARow >= policy.quarantineAfter() ? giveUpUnlessOneOfMany(kind, error) : hold(kind);
    }

    /**
     * Whether it is this message that fails so, although no other one shows that the database is well. Not where others are held as
     * well, nor in the words of a server that goes down or has no room: it may be up again for each probe, and down for each effect. After a while
     * nevertheless, or the message could hold its lane for ever.
     */
    private boolean isAlone(Throwable error) {
        long now = nowMillis.getAsLong();
        if (!noOutageSince) {
            noOutageSince = true;
            firstWithoutOutageAt = now;
        }
        return (!progress.holdsOthersThan(key) && !SqlStates.isServersOwn(SqlStates.stateOf(error)))
                || now - firstWithoutOutageAt >= FLAPPING.toMillis();
    }

    private Verdict hold(FailureKind kind) {
        conflicts = 0; // The time for them does not run on while it is held.
        return Verdict.hold(kind, pause(kind, holds.merge(kind, 1, Integer::sum)));
    }

    private Verdict giveUpUnlessOneOfMany(FailureKind kind, Throwable error) {
        if (callerWaits) {
            return Verdict.giveUp(kind);
        }
        if (key == null || Causes.has(error, UnusableMessageException.class)) {
            progress.unusable(Causes.describe(Causes.root(error)));
            return Verdict.giveUp(kind);
        }
        boolean judgedByUser = Causes.has(error, PermanentFailure.class);
        return !judgedByUser && progress.isOneOfMany(key, kind, error)
                ? hold(FailureKind.BROKEN_SETUP)
                : Verdict.giveUp(kind);
    }
}
