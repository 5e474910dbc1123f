package io.onceflux;

import org.jspecify.annotations.Nullable;

/**
 * A delivery whose key has been looked for.
 *
 * @param delivery the delivery
 * @param key its key, or null if it has no usable one
 * @param unusable why it cannot be handled: no usable key, payload or lane; or null
 * @param lane the lane that it is handled in
 */
record Message<T>(
        Delivery<T> delivery,
        @Nullable MessageKey key,
        @Nullable Throwable unusable,
        int lane) {

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
