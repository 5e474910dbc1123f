package io.onceflux.outbox;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;

/**
 * What an effect wants to happen outside of the database. Immutable, but for the payload, which is not copied.
 *
 * @param kind which {@link Target} of the relay it is for; not blank, 255 bytes in UTF-8 at most
 * @param key entries of a kind with an equal key are sent one after the other, in the order in which they were appended; not blank, 1,000 bytes
 *     at most
 * @param payload the bytes that are sent
 * @param headers sent with it
 */
@SuppressWarnings("ArrayRecordComponent") // Not compared.
public record OutboxEntry(String kind, String key, byte[] payload, Map<String, String> headers) {

    private static final int LONGEST_KIND = 255;
    private static final int LONGEST_KEY = 1_000;

    /** @throws IllegalArgumentException for what PostgreSQL cannot keep as it is: a NUL character, an unpaired surrogate, too long a text */
    public OutboxEntry {
        requireText("kind", kind, LONGEST_KIND);
        requireText("key", key, LONGEST_KEY);
        Objects.requireNonNull(payload, "payload");
        headers = Map.copyOf(headers);
        headers.forEach((name, value) -> {
            requireText("a header's name", name, LONGEST_KIND);
            requireStorable("header " + name, value);
        });
    }

    /** One without headers. */
    public static OutboxEntry of(String kind, String key, byte[] payload) {
        return new OutboxEntry(kind, key, payload, Map.of());
    }

    /** This one with a header more. */
    public OutboxEntry header(String name, String value) {
        Map<String, String> more = new LinkedHashMap<>(headers);
        more.put(name, value);
        return new OutboxEntry(kind, key, payload, more);
    }

    /** This one with headers that it has not. */
    OutboxEntry withFurther(Map<String, String> further) {
        Map<String, String> all = new LinkedHashMap<>(further);
        all.putAll(headers);
        return new OutboxEntry(kind, key, payload, all);
    }

    static void requireText(String what, String text, int longest) {
        if (Objects.requireNonNull(text, what).isBlank()) {
            throw new IllegalArgumentException(what + " of an outbox entry must not be blank");
        }
        int bytes = requireStorable(what, text);
        if (bytes > longest) {
            throw new IllegalArgumentException(
                    "%s of an outbox entry has %d bytes in UTF-8, and may have %d".formatted(what, bytes, longest));
        }
    }

    /** How many bytes it has. */
    private static int requireStorable(String what, String text) {
        if (text.indexOf(0) >= 0) {
            throw new IllegalArgumentException(what + " of an outbox entry must not have a NUL character");
        }
        try {
            return UTF_8.newEncoder().encode(CharBuffer.wrap(text)).remaining();
        } catch (CharacterCodingException e) {
            throw new IllegalArgumentException(what + " of an outbox entry has an unpaired surrogate", e);
        }
    }

    @Override
    public String toString() {
        return "OutboxEntry[%s, %s, %d bytes]".formatted(kind, key, payload.length);
    }
}
