package io.onceflux.rabbit;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.LongString;
import io.onceflux.PermanentFailure;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Finds the id of a message in its properties or in a header. */
final class MessageIds {

    /** What the client puts in the place of bytes that are no UTF-8, whatever they are. */
    private static final char REPLACED = '\uFFFD';

    private MessageIds() {}

    /**
     * The id, or null if there is none.
     *
     * @throws PermanentFailure if the property is not UTF-8; or the header's value is no text, no UTF-8 or no whole number
     */
    static @Nullable String of(BasicProperties properties, @Nullable String header) {
        if (header == null) {
            return property(properties.getMessageId());
        }
        Map<String, Object> headers = properties.getHeaders();
        Object value = headers == null ? null : headers.get(header);
        return value == null ? null : text(header, value);
    }

    /** The client has decoded it, leniently: different ids that are no UTF-8 are equal by now. */
    private static @Nullable String property(@Nullable String id) {
        if (id != null && id.indexOf(REPLACED) >= 0) {
            throw new PermanentFailure("the property message-id is not UTF-8, or has U+FFFD, so it is no message id");
        }
        return id;
    }

    /** Clients differ in how they send text, so all its forms give the same id. */
    private static String text(String header, Object value) {
        if (value instanceof String text) {
            return text;
        }
        if (value instanceof LongString text) {
            return utf8(header, text.getBytes());
        }
        if (value instanceof byte[] bytes) {
            return utf8(header, bytes);
        }
        if (value instanceof Long || value instanceof Integer || value instanceof Short || value instanceof Byte) {
            return value.toString();
        }
        throw new PermanentFailure("the header " + header + " has a value that is no message id: "
                + value.getClass().getSimpleName());
    }

    /** Strictly: a lenient decoder would replace what it cannot read, and make different ids equal. */
    private static String utf8(String header, byte[] bytes) {
        try {
            return StandardCharsets.UTF_8
                    .newDecoder()
                    .decode(ByteBuffer.wrap(bytes))
                    .toString();
        } catch (CharacterCodingException e) {
            throw new PermanentFailure("the header " + header + " is not UTF-8, so it is no message id", e);
        }
    }
}
