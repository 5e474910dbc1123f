package io.onceflux.kafka;

import io.onceflux.Delivery;
import io.onceflux.PermanentFailure;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Base64;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Header;
import org.jspecify.annotations.Nullable;

/** Headers, key and place of a record as text. */
final class RecordText {

    static final String PLACE = "kafka-";

    private RecordText() {}

    /**
     * For people. Of several headers with the same name the last; what is not UTF-8 in base64, and null as {@code null}. Key and
     * place have names that begin with {@code kafka-}; a header of the same name gives way. A record without a value has the header
     * {@link Delivery#NO_BODY}.
     */
    static Map<String, String> of(ConsumerRecord<byte[], byte[]> record) {
        Map<String, String> all = new TreeMap<>();
        for (Header header : record.headers()) {
            all.put(header.key(), text(header.value()));
        }
        all.put(PLACE + "topic", record.topic());
        all.put(PLACE + "partition", Integer.toString(record.partition()));
        all.put(PLACE + "offset", Long.toString(record.offset()));
        all.put(PLACE + "timestamp", Instant.ofEpochMilli(record.timestamp()).toString());
        all.put(PLACE + "key", text(record.key()));
        if (record.value() == null) {
            all.put(Delivery.NO_BODY, "the record has no value (a tombstone)");
        }
        return all;
    }

    private static String text(byte @Nullable [] bytes) {
        if (bytes == null) {
            return "null";
        }
        try {
            return decode(bytes);
        } catch (CharacterCodingException e) {
            return Base64.getEncoder().encodeToString(bytes);
        }
    }

    /**
     * Text that is to be an id: strictly, because a lenient decoder would replace what it cannot read, and make different ids
     * equal.
     *
     * @throws PermanentFailure if it is not UTF-8
     */
    static @Nullable String id(String what, byte @Nullable [] bytes) {
        try {
            return bytes == null ? null : decode(bytes);
        } catch (CharacterCodingException e) {
            throw new PermanentFailure(what + " is not UTF-8, so it is no message id", e);
        }
    }

    private static String decode(byte[] bytes) throws CharacterCodingException {
        return StandardCharsets.UTF_8
                .newDecoder()
                .decode(ByteBuffer.wrap(bytes))
                .toString();
    }
}
