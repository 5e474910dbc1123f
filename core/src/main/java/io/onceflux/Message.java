package io.onceflux;

import org.jspecify.annotations.Nullable;

/**
 * A delivery whose key has been looked for.
 *
 * @param delivery the delivery
 * @param key its key, or null if it has no usable one
 * @param unusable why it cannot be handled: no usable key, payload or lane; or null
 * @param order equal for messages with an equal ordering key; by it the lane is chosen
 */
record Message<T>(
        Delivery<T> delivery,
        @Nullable MessageKey key,
        @Nullable Throwable unusable,
        int order) {

    int lane(int lanes) {
        return Math.floorMod(order, lanes);
    }

    MessageKey requireKey() {
        if (key == null) {
            throw new IllegalStateException("a message without a usable key must not get as far as its claim");
        }
        return key;
    }

    /** The message has no usable key or payload; the cause says why. */
    static final class UnusableMessageException extends RuntimeException {
        UnusableMessageException(Throwable cause) {
            super("the message is unusable: " + Causes.messageOf(cause), cause);
        }
    }
}
