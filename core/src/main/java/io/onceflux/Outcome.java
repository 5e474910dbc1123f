package io.onceflux;

import org.jspecify.annotations.Nullable;

/** What became of a message: a value, never an exception. */
public sealed interface Outcome {

    /** The key of the message, or null if it failed for want of a usable one. */
    @Nullable
    MessageKey key();

    /** The answer that the broker gets. */
    Settlement settlement();

    /** Whether the effect is committed, by this delivery or by an earlier one. */
    default boolean isDone() {
        return true;
    }

    /** The effect ran, and committed together with its claim. */
    record Applied(MessageKey key) implements Outcome {
        @Override
        public Settlement settlement() {
            return Settlement.acknowledge();
        }
    }

    /** The effect had been committed before; nothing ran. */
    record Duplicate(MessageKey key) implements Outcome {
        @Override
        public Settlement settlement() {
            return Settlement.acknowledge();
        }
    }

    /** The message was overtaken by a newer version; nothing was changed. */
    record Stale(MessageKey key) implements Outcome {
        @Override
        public Settlement settlement() {
            return Settlement.acknowledge();
        }
    }

    /**
     * Another message with the same key and another fingerprint had been applied before ({@link ConsumerBuilder#fingerprintedBy}); nothing
     * ran. It becomes a dead letter: one of the two should have had another key, or should not have been sent.
     */
    record Conflict(MessageKey key, Failure failure) implements Outcome {

        static Conflict of(MessageKey key) {
            return new Conflict(
                    key,
                    Failure.permanent(key, "another message with this id, but with other content, was applied before"));
        }

        Conflict after(int attempts) {
            return new Conflict(key, failure.after(attempts));
        }

        @Override
        public Settlement settlement() {
            return Settlement.deadLetter(key.consumer(), failure);
        }

        @Override
        public boolean isDone() {
            return false;
        }
    }

    /**
     * The message was given up; whatever its effect wrote was rolled back.
     *
     * @param consumer the consumer that gave it up
     * @param failure why
     */
    record Failed(String consumer, Failure failure) implements Outcome {

        /** Of a message whose claim was refused. */
        static Failed refused(MessageKey key, String reason) {
            return new Failed(key.consumer(), Failure.permanent(key, reason));
        }

        Failed after(int attempts) {
            return new Failed(consumer, failure.after(attempts));
        }

        @Override
        public @Nullable MessageKey key() {
            return failure.messageKey();
        }

        @Override
        public Settlement settlement() {
            return Settlement.deadLetter(consumer, failure);
        }

        @Override
        public boolean isDone() {
            return false;
        }
    }
}
