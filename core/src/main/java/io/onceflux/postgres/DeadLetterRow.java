package io.onceflux.postgres;

import java.time.Instant;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A row of a {@link DeadLetterTable}.
 *
 * @param number its number, given by the table; 0 before it is stored
 * @param times how often it has been given up, counted by the table
 * @param consumer the consumer that gave it up
 * @param messageKey the id of its claim, or null if it has no usable one
 * @param messageId the id that the source found on the message, or null
 * @param origin where it came from
 * @param kind what kind of failure it was; one that this release does not know, if another wrote the row
 * @param reason why, for a person
 * @param sqlState the SQLSTATE of the last error, or null
 * @param attempts how many transactions were started for it
 * @param failedAt when it was given up; null if the row has no time that Java has
 * @param headers the headers of the message, as text
 * @param body the body of the message, byte for byte
 */
@SuppressWarnings("ArrayRecordComponent") // Two of them are never compared.
public record DeadLetterRow(
        long number,
        int times,
        String consumer,
        @Nullable String messageKey,
        @Nullable String messageId,
        String origin,
        String kind,
        String reason,
        @Nullable String sqlState,
        int attempts,
        @Nullable Instant failedAt,
        Map<String, String> headers,
        byte[] body) {

    /** Without reason, headers and body, which may be large or private. */
    @Override
    public String toString() {
        return "DeadLetterRow[number=%d, times=%d, consumer=%s, messageKey=%s, kind=%s, sqlState=%s, attempts=%d, failedAt=%s, body of %d bytes]"
                .formatted(number, times, consumer, messageKey, kind, sqlState, attempts, failedAt, body.length);
    }
}
