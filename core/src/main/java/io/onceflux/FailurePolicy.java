package io.onceflux;

import static io.onceflux.Require.positive;
import static io.onceflux.Require.that;

import java.time.Duration;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * How often and how long a failing message is tried again. Immutable.
 *
 * @param maxAttempts transactions for a message whose effect fails ({@link FailureKind#EFFECT}) before it is given up; default 3
 * @param minBackoff the pause before the second attempt; it doubles with every further one; default 100 ms
 * @param maxBackoff the longest pause between two attempts; default 5 s. Each pause is shortened by chance, by up to half.
 * @param conflictTimeout how long a message may go on meeting other transactions ({@link FailureKind#CONFLICT}) before that
 *     counts as a failing effect; default 10 minutes
 * @param quarantineAfter how many times in a row one message may fail as infrastructure, while the database answers a probe
 *     that writes, before it is given up, so that it cannot hold a lane for ever; default 10. A failure as a broken set-up counts
 *     only if an effect of another message has committed since the one before, and a COMMIT without an answer only if anything has
 * @param alarmAfter how many different keys in a row may fail for good in the same way, with no success among them, before
 *     that is taken for a broken set-up: messages are then held and an alarm is raised, so that a bad deployment does not
 *     empty a queue into the dead letters. Default 100. Those without a usable key or payload become dead letters all
 *     the same, with a warning after as many, and those for which an effect throws {@link PermanentFailure} do not count. A held message goes on when another has been applied, or after a restart
 *     with the fault mended; for a queue that really is full of bad messages, raise the number.
 * @param classifier the user's own word on an exception, as it left the effect, asked before the SQLSTATE is looked at; null
 *     means "no opinion". Default: no opinion on any.
 */
public record FailurePolicy(
        int maxAttempts,
        Duration minBackoff,
        Duration maxBackoff,
        Duration conflictTimeout,
        int quarantineAfter,
        int alarmAfter,
        Function<Throwable, @Nullable FailureKind> classifier) {

    /** Checks every part. */
    public FailurePolicy {
        positive("maxAttempts", maxAttempts);
        positive("minBackoff", minBackoff);
        positive("maxBackoff", maxBackoff);
        positive("conflictTimeout", conflictTimeout);
        positive("quarantineAfter", quarantineAfter);
        positive("alarmAfter", alarmAfter);
        that(
                minBackoff.compareTo(maxBackoff) <= 0,
                "minBackoff (%s) must not be longer than maxBackoff (%s)".formatted(minBackoff, maxBackoff));
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
        private Duration minBackoff = Duration.ofMillis(100);
        private Duration maxBackoff = Duration.ofSeconds(5);
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

        /** Sets {@link FailurePolicy#minBackoff} and {@link FailurePolicy#maxBackoff}. */
        public Builder backoff(Duration min, Duration max) {
            this.minBackoff = min;
            this.maxBackoff = max;
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
            this.classifier = ownClassifier;
            return this;
        }

        /**
         * Makes the policy.
         *
         * @throws InvalidSetupException with the name of the part that is out of range
         */
        public FailurePolicy build() {
            return new FailurePolicy(
                    maxAttempts, minBackoff, maxBackoff, conflictTimeout, quarantineAfter, alarmAfter, classifier);
        }
    }
}
