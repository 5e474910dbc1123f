package io.onceflux.outbox;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.onceflux.MessageKey;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.UUID;

/** Makes idempotency keys: the same for the same message and ordinal, on every attempt and machine, and no others. */
final class IdempotencyKeys {

    private IdempotencyKeys() {}

    /**
     * A UUID of version 8 (RFC 9562), of the first bits of a SHA-256: receivers store and compare it as they like, and it has a fixed length
     * whatever the ids of messages are.
     *
     * @param ordinal the how manieth entry of the message
     */
    static String of(MessageKey key, int ordinal) {
        byte[] consumer = key.consumer().getBytes(UTF_8);
        byte[] id = key.id().getBytes(UTF_8);
        ByteBuffer all = ByteBuffer.allocate(2 * Integer.BYTES + consumer.length + id.length);
        all.putInt(consumer.length).put(consumer).put(id).putInt(ordinal);
        ByteBuffer hash = ByteBuffer.wrap(sha256(all.array()));
        long high = (hash.getLong() & ~0xF000L) | 0x8000L;
        long low = (hash.getLong() & 0x3FFF_FFFF_FFFF_FFFFL) | 0x8000_0000_0000_0000L;
        return new UUID(high, low).toString();
    }

    private static byte[] sha256(byte[] content) {
        try {
            return MessageDigest.getInstance("SHA-256").digest(content);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-256", e);
        }
    }
}
