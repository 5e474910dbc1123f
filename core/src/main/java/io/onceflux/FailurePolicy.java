package io.onceflux;

import static io.onceflux.Require.given;
import static io.onceflux.Require.positive;
import static io.onceflux.Require.that;

import java.time.Duration;
import java.util.EnumMap;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * How often and how long a failing message is tried again. Immutable.
 *
 * @param maxAttempts transactions for a message whose effect fails ({@link FailureKind#EFFECT}) before it is given up; default 3
 * @param backoffs the pauses between attempts, by the kind of the failure before. Each kind counts its own failures, and its pauses
 *     double. Defaults: a conflict is tried again at once, then after 20 ms to 1 s; an effect after 100 ms to 5 s;
 *     infrastructure after 100 ms to 5 s; a broken set-up, which a person has to mend, after 1 s to 10 s
 * @param conflictTimeout how long a message may go on meeting other transactions ({@link FailureKind#CONFLICT}) before that
 *     counts as a failing effect; default 10 minutes
 * @param quarantineAfter how many times in a row one message may fail as infrastructure, while the database answers a probe
 *     that writes, before it is given up, so that it cannot hold a lane for ever; default 10. A failure as a broken set-up counts
 *     only if an effect of another message has committed since the one before, and a COMMIT without an answer only if anything has;
 *     a missing partition of the claim table never counts
 * @param alarmAfter how many different keys may fail for good in the same way, with no effect applied since the first, before
 *     that is taken for a broken set-up: messages are then held and an alarm is raised, so that a bad deployment does not
 *     empty a queue into the dead letters. Default 100. Those without a usable key or payload become dead letters all
 *     the same, with a warning after as many, and those for which an effect throws {@link PermanentFailure} do not count. A held message goes on when another has been applied, or after a restart
 *     with the fault mended; for a queue that really is full of bad messages, raise the number.
 * @param classifier the user's own word on an exception of the effect, as it left the effect, or of the COMMIT if the server refused
 *     it; asked before the SQLSTATE is looked at. Not asked when there was no connection, the claim failed, the COMMIT was not
 *     answered, or the time limit passed. Null means "no opinion". Default: no opinion on any.
 */
public record FailurePolicy(
        int maxAttempts,
        Map<FailureKind, Backoff> backoffs,
        Duration conflictTimeout,
        int quarantineAfter,
        int alarmAfter,
        Function<Throwable, @Nullable FailureKind> classifier) {

    /** Checks every part. */
    public FailurePolicy {
        positive("maxAttempts", maxAttempts);
        positive("conflictTimeout", conflictTimeout);
        positive("quarantineAfter", quarantineAfter);
        positive("alarmAfter", alarmAfter);
        given("classifier", classifier);
        for (FailureKind kind : FailureKind.values()) {
            Backoff backoff = backoffs.get(kind);
            if (kind == FailureKind.PERMANENT) {
                that(backoff == null, "backoffs has one for PERMANENT, but such a failure is never tried again");
            } else {
                checkBackoff(kind, given("the backoff of " + kind, backoff));
            }
        }
        backoffs = Map.copyOf(backoffs);
    }

    private static void checkBackoff(FailureKind kind, Backoff backoff) {
        positive("the backoff's min of " + kind, backoff.min());
        positive("the backoff's max of " + kind, backoff.max());
        that(
                backoff.min().compareTo(backoff.max()) <= 0,
                "the backoff's min of %s (%s) must not be longer than its max (%s)"
                        .formatted(kind, backoff.min(), backoff.max()));
    }

    /** The pauses after failures of a kind that is tried again: any but {@link FailureKind#PERMANENT}. */
    Backoff backoff(FailureKind kind) {
        return given("the backoff of " + kind, backoffs.get(kind));
    }

    /** The defaults that are named at the parts. */
    public static FailurePolicy defaults() {
        return builder().build();
    }

    /** Starts from the defaults. */
    public static Builder builder() {
        return new Builder();
    }

    /** Makes a {@link FailurePolicy}; what each part means is said there. */
    public static final class Builder {

        private int maxAttempts = 3;
        private final Map<FailureKind, Backoff> backoffs = new EnumMap<>(Map.of(
                FailureKind.CONFLICT, Backoff.between(Duration.ofMillis(20), Duration.ofSeconds(1)),
                FailureKind.INFRASTRUCTURE, Backoff.between(Duration.ofMillis(100), Duration.ofSeconds(5)),
                FailureKind.BROKEN_SETUP, Backoff.between(Duration.ofSeconds(1), Duration.ofSeconds(10)),
                FailureKind.EFFECT, Backoff.between(Duration.ofMillis(100), Duration.ofSeconds(5))));
        private Duration conflictTimeout = Duration.ofMinutes(10);
        private int quarantineAfter = 10;
        private int alarmAfter = 100;
        private Function<Throwable, @Nullable FailureKind> classifier = error -> null;

        private Builder() {}

        /** Sets {@link FailurePolicy#maxAttempts}. */
        public Builder maxAttempts(int attempts) {
            this.maxAttempts = attempts;
            return this;
        }

        /** Sets {@link FailurePolicy#backoffs} of all kinds that are tried again. */
        public Builder backoff(Duration min, Duration max) {
            Backoff pauses = Backoff.between(given("min", min), given("max", max));
            backoffs.replaceAll((kind, before) -> pauses);
            return this;
        }

        /** Sets {@link FailurePolicy#backoffs} of one kind; not of {@link FailureKind#PERMANENT}, which is never tried again. */
        public Builder backoff(FailureKind kind, Backoff pauses) {
            backoffs.put(given("kind", kind), given("the backoff of " + kind, pauses));
            return this;
        }

        /** Sets {@link FailurePolicy#conflictTimeout}. */
        public Builder conflictTimeout(Duration timeout) {
            this.conflictTimeout = timeout;
            return this;
        }

        /** Sets {@link FailurePolicy#quarantineAfter}. */
        public Builder quarantineAfter(int failures) {
            this.quarantineAfter = failures;
            return this;
        }

        /** Sets {@link FailurePolicy#alarmAfter}. */
        public Builder alarmAfter(int keys) {
            this.alarmAfter = keys;
            return this;
        }

        /** Sets {@link FailurePolicy#classifier}. */
        public Builder classifying(Function<Throwable, @Nullable FailureKind> ownClassifier) {
            this.classifier = given("classifying", ownClassifier);
            return this;
        }

        /**
         * Makes the policy.
         *
         * @throws InvalidSetupException with the name of the part that is out of range
         */
        public FailurePolicy build() {
            return new FailurePolicy(maxAttempts, backoffs, conflictTimeout, quarantineAfter, alarmAfter, classifier);
        }
    }
}
