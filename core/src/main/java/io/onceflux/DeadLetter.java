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
 * @param attempts how many transactions were started for it, as {@link Failure#attempts}
 * @param time when it was given up; null if that is not known
 * @param headers the headers of the message, as text, and what its source adds: of RabbitMQ the properties, such as {@code content-type},
 *     and the place ({@code exchange}, {@code routing-key}); of Kafka the key ({@code kafka-key}) and the place ({@code kafka-topic}, {@code
 *     kafka-partition}, {@code kafka-offset}, {@code kafka-timestamp}). In a queue or topic of dead letters the place is that of the letter
 *     itself; where the original was is in {@code x-onceflux-queue}, {@code x-onceflux-topic}, {@code x-onceflux-offset} and so on. In a table the
 *     place is that of the original
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
