package io.onceflux.rabbit;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.LongString;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** Headers and properties of a message as text, for people. */
final class MessageText {

    private MessageText() {}

    /** Properties have the names of the protocol, such as {@code content-type}; a header of the same name gives way. */
    static Map<String, String> of(Delivery message) {
        BasicProperties properties = message.getProperties();
        Map<String, String> all = new TreeMap<>();
        if (properties.getHeaders() != null) {
            properties.getHeaders().forEach((name, value) -> put(all, name, value));
        }
        put(all, "content-type", properties.getContentType());
        put(all, "content-encoding", properties.getContentEncoding());
        put(all, "message-id", properties.getMessageId());
        put(all, "correlation-id", properties.getCorrelationId());
        put(all, "reply-to", properties.getReplyTo());
        put(all, "type", properties.getType());
        put(all, "app-id", properties.getAppId());
        put(all, "user-id", properties.getUserId());
        put(all, "expiration", properties.getExpiration());
        put(all, "priority", properties.getPriority());
        put(
                all,
                "timestamp",
                properties.getTimestamp() == null
                        ? null
                        : properties.getTimestamp().toInstant());
        put(all, "exchange", message.getEnvelope().getExchange());
        put(all, "routing-key", message.getEnvelope().getRoutingKey());
        return all;
    }

    private static void put(Map<String, String> all, String name, @Nullable Object value) {
        if (value != null) {
            all.put(name, text(value));
        }
    }

    private static String text(Object value) {
        if (value instanceof byte[] bytes) {
            return Base64.getEncoder().encodeToString(bytes);
        }
        return value instanceof LongString text
                ? new String(text.getBytes(), StandardCharsets.UTF_8)
                : String.valueOf(value);
    }
}
