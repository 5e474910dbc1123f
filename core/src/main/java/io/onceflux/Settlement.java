package io.onceflux;

/** The answer that a broker gets for a delivery. */
public sealed interface Settlement {

    /** The message is done with: its effect is committed, now or before. */
    record Acknowledge() implements Settlement {}

    /** The message was not handled; the broker delivers it again, here or elsewhere. */
    record Requeue() implements Settlement {}

    /**
     * The message cannot be handled. It is stored as a dead letter, and acknowledged only when that is confirmed.
     *
     * @param consumer the consumer that gave it up
     * @param failure why
     */
    record DeadLetter(String consumer, Failure failure) implements Settlement {}

    /** {@link Acknowledge}. */
    static Settlement acknowledge() {
        return new Acknowledge();
    }

    /** {@link Requeue}. */
    static Settlement requeue() {
        return new Requeue();
    }

    /** {@link DeadLetter}. */
    static Settlement deadLetter(String consumer, Failure failure) {
        return new DeadLetter(consumer, failure);
    }
}
