package io.onceflux.outbox;

import java.time.Instant;
import java.util.Map;

/**
 * An entry of the outbox on its way to its target.
 *
 * @param idempotencyKey the same each time it is sent, and the same for whatever attempt of its message wrote it: the receiver knows it again
 *     by that
 * @param kind which target it is for
 * @param key entries of a kind with an equal key are sent in order
 * @param payload the bytes that are sent
 * @param headers sent with it
 * @param appendedAt by the clock of the database: when the transaction that wrote it began
 * @param attempt the how manieth time it is tried, from 1 on. A time that was cut short by a stop or by cancelling does not count, although it may have
 *     arrived; one that a process did not live to see the end of does
 */
@SuppressWarnings("ArrayRecordComponent") // Not compared.
public record OutboxMessage(
        String idempotencyKey,
        String kind,
        String key,
        byte[] payload,
        Map<String, String> headers,
        Instant appendedAt,
        int attempt) {

    @Override
    public String toString() {
        return "OutboxMessage[%s, %s, %s, %d bytes, attempt %d]"
                .formatted(idempotencyKey, kind, key, payload.length, attempt);
    }
}
