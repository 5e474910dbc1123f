package io.onceflux;

import java.nio.charset.StandardCharsets;
import java.time.Instant;

/**
 * The time that is a part of a message's id, for {@link ConsumerBuilder#bucketedByKey}. Those here are two; others, such as the numbers of
 * a Snowflake, are written as a lambda. It must give the same time for the same id, whenever it is asked.
 */
@FunctionalInterface
public interface KeyTime {

    /**
     * The time of an id.
     *
     * @param messageId as the message has it, before a long one is hashed. Called on the thread that emits the delivery; a throw or null
     *     makes the message a dead letter
     */
    Instant of(String messageId);

    /**
     * That of a UUID of version 7: milliseconds since 1970 in its first 48 bits. In any other it is a dead letter. Source: RFC 9562,
     * section 5.7.
     */
    static KeyTime uuidV7() {
        return KeyTime::ofUuidV7;
    }

    /**
     * That of a ULID: milliseconds since 1970 in its first ten characters, in the base 32 of Crockford, upper or lower case. Source:
     * https://github.com/ulid/spec
     */
    static KeyTime ulid() {
        return KeyTime::ofUlid;
    }

    private static Instant ofUuidV7(String id) {
        boolean isUuid = id.length() == 36;
        for (int i = 0; isUuid && i < id.length(); i++) {
            char c = id.charAt(i);
            isUuid = (i == 8 || i == 13 || i == 18 || i == 23) ? c == '-' : isHexadecimal(c);
        }
        if (!isUuid || id.charAt(14) != '7' || "89abAB".indexOf(id.charAt(19)) < 0) {
            throw new PermanentFailure("the message id is no UUID of version 7, so it has no time");
        }
        return Instant.ofEpochMilli(Long.parseLong(id.substring(0, 8) + id.substring(9, 13), 16));
    }

    private static boolean isHexadecimal(char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    }

    private static Instant ofUlid(String id) {
        byte[] characters = id.getBytes(StandardCharsets.US_ASCII);
        boolean isUlid = id.length() == 26;
        long millis = 0;
        for (int i = 0; isUlid && i < characters.length; i++) {
            int digit = "0123456789ABCDEFGHJKMNPQRSTVWXYZ".indexOf(upper(characters[i]));
            isUlid = digit >= 0 && (i > 0 || digit <= 7); // The first one has three bits.
            millis = i < 10 ? (millis << 5) | digit : millis;
        }
        if (!isUlid) {
            throw new PermanentFailure("the message id is no ULID, so it has no time");
        }
        return Instant.ofEpochMilli(millis);
    }

    private static char upper(byte c) {
        return (char) (c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    }
}
