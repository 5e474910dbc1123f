package io.onceflux.rabbit;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Delivery;
import io.onceflux.DeadLetter;
import io.onceflux.FailureKind;
import java.time.DateTimeException;
import java.time.Instant;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** A message in a queue of dead letters, put there by {@link DeadLetterMessage} or by the broker. */
record KeptMessage(Delivery message, String defaultQueue) {

    /** What {@link DeadLetterMessage} adds to say why and where from; what it moved is not among them. */
    private static final List<String> ADDED = List.of(
            "consumer",
            "kind",
            "reason",
            "attempts",
            "time",
            "message-key",
            "sqlstate",
            "queue",
            "exchange",
            "routing-key");

    long deliveryTag() {
        return message.getEnvelope().getDeliveryTag();
    }

    byte[] body() {
        return message.getBody();
    }

    /** The queue that it was consumed from. */
    String cameFrom() {
        String queue = added("queue");
        return queue != null ? queue : defaultQueue;
    }

    /** The properties as they were. The user's id stays away: the broker takes only that of who publishes. */
    BasicProperties original() {
        BasicProperties kept = message.getProperties();
        Map<String, Object> headers = new HashMap<>(kept.getHeaders() == null ? Map.of() : kept.getHeaders());
        ADDED.forEach(name -> headers.remove(DeadLetterMessage.PREFIX + name));
        Object expiration = headers.remove(DeadLetterMessage.PREFIX + "expiration");
        return kept.builder()
                .headers(headers)
                .expiration(expiration == null ? null : expiration.toString())
                .build();
    }

    DeadLetter letter() {
        String reason = added("reason");
        return new DeadLetter(
                added("consumer"),
                added("message-key"),
                kind(),
                reason != null ? reason : brokersReason(),
                added("sqlstate"),
                attempts(),
                time(),
                MessageText.of(message),
                message.getBody());
    }

    private @Nullable FailureKind kind() {
        String kind = added("kind");
        return Arrays.stream(FailureKind.values())
                .filter(known -> known.name().equals(kind))
                .findFirst()
                .orElse(null);
    }

    private int attempts() {
        Object attempts = header(DeadLetterMessage.PREFIX + "attempts");
        return attempts instanceof Number number ? number.intValue() : 0;
    }

    private @Nullable Instant time() {
        String time = added("time");
        try {
            return time == null ? null : Instant.parse(time);
        } catch (DateTimeException e) { // Somebody else's header.
            return null;
        }
    }

    private String brokersReason() {
        Object reason = header("x-first-death-reason");
        return reason == null ? "unknown" : "given up by the broker: " + reason;
    }

    private @Nullable String added(String name) {
        Object value = header(DeadLetterMessage.PREFIX + name);
        return value == null ? null : value.toString();
    }

    private @Nullable Object header(String name) {
        Map<String, Object> headers = message.getProperties().getHeaders();
        return headers == null ? null : headers.get(name);
    }
}
