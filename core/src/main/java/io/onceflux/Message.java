package io.onceflux;

import java.time.Instant;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A delivery whose key has been looked for.
 *
 * @param delivery the delivery
 * @param key its key, or null if it has no usable one
 * @param unusable why it cannot be handled: no usable key, payload or lane; or null
 * @param order equal for messages with an equal ordering key; by it the lane is chosen
 * @param ordered whether it has an ordering key, other than its id
 * @param fingerprint of what it says; null if unknown, or if nobody asks
 * @param sentAt when it came to be, as its producer says; null if nobody asks
 * @param claimTime the time that its claim goes by; null if nobody asks
 * @param accounted whether the listener has been told what became of it
 * @param warned whether it has been logged that its source cannot say whether it is current
 */
record Message<T>(
        Delivery<T> delivery,
        @Nullable MessageKey key,
        @Nullable Throwable unusable,
        int order,
        boolean ordered,
        @Nullable Long fingerprint,
        @Nullable Instant sentAt,
        @Nullable Instant claimTime,
        AtomicBoolean accounted,
        AtomicBoolean warned) {

    private static final Logger log = LoggerFactory.getLogger(IdempotentConsumer.class);

    Message(
            Delivery<T> delivery,
            @Nullable MessageKey key,
            @Nullable Throwable unusable,
            int order,
            boolean ordered,
            @Nullable Long fingerprint,
            @Nullable Instant sentAt,
            @Nullable Instant claimTime) {
        this(
                delivery,
                key,
                unusable,
                order,
                ordered,
                fingerprint,
                sentAt,
                claimTime,
                new AtomicBoolean(),
                new AtomicBoolean());
    }

    /** True once: for who tells the listener what became of the message, its outcome or that it is left to redelivery. */
    boolean account() {
        return accounted.compareAndSet(false, true);
    }

    /** {@link Delivery#isCurrent}; a source that throws instead is taken for one that can still be answered. */
    boolean isCurrent() {
        try {
            return delivery.isCurrent();
        } catch (Throwable e) { // An Error too: it would end the flux.
            if (warned.compareAndSet(false, true)) {
                logThrown("isCurrent", e);
            }
            return true;
        }
    }

    /** As far as their source says. */
    boolean hasOtherBodyThan(Message<T> other) {
        try {
            byte[] own = delivery.body();
            byte[] others = other.delivery.body();
            return own != null && others != null && !Arrays.equals(own, others);
        } catch (Throwable e) { // An Error too: it would end the flux.
            logThrown("body", e);
            return false;
        }
    }

    void handlingBegins() {
        tell("handlingBegins", delivery::handlingBegins);
    }

    void handlingEnded() {
        tell("handlingEnded", delivery::handlingEnded);
    }

    private void tell(String call, Runnable source) {
        try {
            source.run();
        } catch (Throwable e) {
            logThrown(call, e);
        }
    }

    private void logThrown(String call, Throwable error) {
        log.warn(
                "{} of the delivery of message {} threw: {}",
                call,
                key == null ? "without a usable key" : Printable.text(key.toString()),
                Printable.error(error));
    }

    int lane(int lanes) {
        return Math.floorMod(order, lanes);
    }

    /** What is claimed for it. */
    Claims.Claim claim() {
        return claim(null);
    }

    /** @param tooOld why it is to be refused unless it was admitted by hand; null if it is not */
    Claims.Claim claim(@Nullable String tooOld) {
        return new Claims.Claim(requireKey(), fingerprint, claimTime, tooOld);
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
