package io.onceflux;

import java.time.Instant;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The time that the claim of a message goes by.
 *
 * @param property what the user calls it
 * @param ofId that of an id; null where it is not in the id
 * @param ofPayload that of a payload; null where it is in the id
 * @param <T> the payload
 */
record ClaimTime<T>(
        String property,
        @Nullable Function<String, @Nullable Instant> ofId,
        @Nullable Function<? super T, @Nullable Instant> ofPayload) {

    static <T> ClaimTime<T> byKey(KeyTime time) {
        return new ClaimTime<>("bucketedByKey", time::of, null);
    }

    static <T> ClaimTime<T> byPayload(Function<? super T, @Nullable Instant> time) {
        return new ClaimTime<>("bucketedBy", null, time);
    }

    /** Of a message; {@link PermanentFailure} if it has none. */
    Instant of(String messageId, T payload) {
        return ofPayload == null ? ofId(messageId) : required(Identify.call(property, ofPayload, payload));
    }

    boolean isInId() {
        return ofId != null;
    }

    /** Of a message of which no more is known than its id. */
    Instant ofId(String messageId) {
        if (ofId == null) {
            throw new IllegalStateException("the time is not in the id");
        }
        return required(Identify.call(property, ofId, messageId));
    }

    private Instant required(@Nullable Instant time) {
        if (time == null) {
            throw new PermanentFailure(property + " returned null for the message");
        }
        return time;
    }
}
