package io.onceflux;

import java.time.Instant;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A message that was given up, as it is kept.
 *
 * @param consumer the consumer that gave it up; null if the broker did
 * @param messageKey the id of its claim; null if it has no usable one
 * @param kind what kind of failure it was; null if the broker gave it up, or another release of OnceFlux for a kind of its own
 * @param reason why, for a person
 * @param sqlState the SQLSTATE of the last error, or null
 * @param attempts how many transactions were started for it
 * @param time when it was given up; null if that is not known
 * @param headers the headers of the message, as text
 * @param body the body of the message, byte for byte
 */
@SuppressWarnings("ArrayRecordComponent") // Two of them are never compared.
public record DeadLetter(
        @Nullable String consumer,
        @Nullable String messageKey,
        @Nullable FailureKind kind,
        String reason,
        @Nullable String sqlState,
        int attempts,
        @Nullable Instant time,
        Map<String, String> headers,
        byte[] body) {

    /** Without the body and headers, which may be large or private. */
    @Override
    public String toString() {
        return "DeadLetter[consumer=%s, messageKey=%s, kind=%s, sqlState=%s, attempts=%d, time=%s, reason=%s, body of %d bytes]"
                .formatted(consumer, messageKey, kind, sqlState, attempts, time, reason, body.length);
    }
}
