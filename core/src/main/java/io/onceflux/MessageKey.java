package io.onceflux;

import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.jspecify.annotations.Nullable;

/**
 * The unit of "once": a consumer and the id of a message, compared byte by byte.
 *
 * <p>Nothing is normalised, except by a key column of type uuid, for which upper and lower case are the same. {@code "Key"} and {@code "key"}, {@code "k"} and {@code "k "}, and the composed and decomposed
 * spelling of {@code "café"} are different ids. The two parts stay apart, so consumer {@code "a:b"} with id {@code "c"}
 * is never consumer {@code "a"} with id {@code "b:c"}.
 *
 * <p>An id of more than {@value #MAX_ID_BYTES} bytes in UTF-8 is stored as {@code sha256:} and its SHA-256 in hexadecimal,
 * because PostgreSQL refuses index entries over 2,704 bytes (54000). An id that itself starts with {@code sha256:} is
 * hashed too, whatever its length, so that no literal id can equal a hashed one.
 *
 * @param consumer the name of the consumer, unique among the consumers of a claim table
 * @param id the id as it is stored; use {@link #of} to make one from a message's own id
 */
public record MessageKey(String consumer, String id) {

    /** The longest id, in bytes of UTF-8, that is stored as it is. It fits the usual {@code varchar(255)}. */
    public static final int MAX_ID_BYTES = 255;

    private static final String HASHED = "sha256:";

    /**
     * The key of a message.
     *
     * @param consumer the name of the consumer
     * @param messageId the id that the producer gave the message, or a natural key of the message
     * @throws PermanentFailure if the id is blank, or has a NUL character or an unpaired surrogate: PostgreSQL cannot
     *     store the first, and would store the second as {@code ?}, which makes different ids equal
     */
    public static MessageKey of(String consumer, String messageId) {
        refuseUnusable(messageId);
        byte[] utf8 = messageId.getBytes(StandardCharsets.UTF_8);
        boolean storedAsIs = utf8.length <= MAX_ID_BYTES && !messageId.startsWith(HASHED);
        return new MessageKey(
                consumer, storedAsIs ? messageId : HASHED + HexFormat.of().formatHex(Sha256.of(utf8)));
    }

    /** Throws {@link PermanentFailure} for an id that cannot be a key. */
    static void refuseUnusable(String id) {
        String fault = faultOf(id);
        if (fault != null) {
            throw new PermanentFailure("the message id " + fault);
        }
    }

    /** Why a text cannot be a part of a key; null if it can. */
    static @Nullable String faultOf(String part) {
        if (part.isBlank()) {
            return part.isEmpty() ? "is empty" : "is blank";
        }
        for (int i = 0; i < part.length(); i++) {
            char c = part.charAt(i);
            if (c == 0) {
                return "has a NUL character at index " + i;
            }
            if (Character.isHighSurrogate(c) && i + 1 < part.length() && Character.isLowSurrogate(part.charAt(i + 1))) {
                i++;
            } else if (Character.isSurrogate(c)) {
                return "has an unpaired surrogate at index " + i;
            }
        }
        return null;
    }

    // By hand, because keys are what a batch is looked through by: a tenth of the pipeline's time went into the
    // record's own (docs/decisions/0012).

    @Override
    public boolean equals(@Nullable Object other) {
        return other instanceof MessageKey key && id.equals(key.id) && consumer.equals(key.consumer);
    }

    @Override
    public int hashCode() {
        return 31 * consumer.hashCode() + id.hashCode();
    }

    @Override
    public String toString() {
        return consumer + "/" + id;
    }
}
