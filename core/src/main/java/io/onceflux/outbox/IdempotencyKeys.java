package io.onceflux.outbox;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.onceflux.MessageKey;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
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
        return uuid(all.array());
    }

    /**
     * The same for a message whose id may be that of another: of what the entry says, in place of an ordinal. So the same entry of a message that
     * comes again is the same, and another one is another.
     */
    static String ofContent(MessageKey key, OutboxEntry entry) {
        List<String> texts = new ArrayList<>(List.of(key.consumer(), key.id(), entry.kind(), entry.key()));
        new TreeMap<>(entry.headers()).forEach((name, value) -> {
            texts.add(name);
            texts.add(value);
        });
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        for (String text : texts) {
            byte[] bytes = text.getBytes(UTF_8);
            all.writeBytes(
                    ByteBuffer.allocate(Integer.BYTES).putInt(bytes.length).array());
            all.writeBytes(bytes);
        }
        all.writeBytes(entry.payload());
        return uuid(all.toByteArray());
    }

    private static String uuid(byte[] content) {
        ByteBuffer hash = ByteBuffer.wrap(sha256(content));
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
