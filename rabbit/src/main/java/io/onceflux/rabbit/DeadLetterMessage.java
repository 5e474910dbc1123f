package io.onceflux.rabbit;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Delivery;
import io.onceflux.Failure;
import io.onceflux.Settlement;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A message as a dead letter: its body, headers and properties as they were, and headers that say why.
 *
 * <p>Three things cannot stay in their place, because the broker would act on them, and are kept in headers instead: the
 * expiration (the dead letter would vanish), the user id (the broker refuses another's), and {@code CC} (copies would go out).
 */
final class DeadLetterMessage {

    static final String PREFIX = "x-onceflux-";
    private static final int PERSISTENT = 2;

    private DeadLetterMessage() {}

    static BasicProperties properties(Delivery original, String queue, Settlement.DeadLetter why) {
        BasicProperties was = original.getProperties();
        Map<String, Object> headers = new HashMap<>();
        if (was.getHeaders() != null) {
            headers.putAll(was.getHeaders());
        }
        move(headers, "CC", headers.remove("CC"));
        move(headers, "expiration", was.getExpiration());
        move(headers, "user-id", was.getUserId());
        headers.put(PREFIX + "queue", queue);
        headers.put(PREFIX + "exchange", original.getEnvelope().getExchange());
        headers.put(PREFIX + "routing-key", original.getEnvelope().getRoutingKey());
        describe(headers, why.consumer(), why.failure());
        return was.builder()
                .headers(headers)
                .expiration(null)
                .userId(null)
                .deliveryMode(PERSISTENT)
                .build();
    }

    private static void describe(Map<String, Object> headers, String consumer, Failure failure) {
        headers.put(PREFIX + "consumer", consumer);
        headers.put(PREFIX + "kind", failure.kind().name());
        headers.put(PREFIX + "reason", failure.reason());
        headers.put(PREFIX + "attempts", failure.attempts());
        headers.put(PREFIX + "time", failure.time().toString());
        if (failure.messageKey() != null) {
            headers.put(PREFIX + "message-key", failure.messageKey().id());
        }
        if (failure.sqlState() != null) {
            headers.put(PREFIX + "sqlstate", failure.sqlState());
        }
    }

    private static void move(Map<String, Object> headers, String name, @Nullable Object value) {
        if (value != null) {
            headers.put(PREFIX + name, value);
        }
    }
}
