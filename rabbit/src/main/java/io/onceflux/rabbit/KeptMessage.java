package io.onceflux.rabbit;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Delivery;
import io.onceflux.DeadLetter;
import io.onceflux.FailureKind;
import java.time.DateTimeException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A message in a queue of dead letters, put there by {@link DeadLetterMessage} or by the broker.
 *
 * <p>The broker notes each queue in which it gave a message up in {@code x-death}, the latest first, whatever the sender had put there; it
 * leaves the sender's other headers as they are. {@link DeadLetterMessage} leaves no {@code x-death} in its place. So what died
 * anywhere but among dead letters was not described by it, and headers that say so are the sender's.
 *
 * @param defaultQueue where it goes back to if nothing says where it came from
 * @param deadLetterQueues the queues that have dead letters
 */
record KeptMessage(Delivery message, String defaultQueue, Set<String> deadLetterQueues) {

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

    /** The queue that it was consumed from, or in which the broker gave it up. */
    String cameFrom() {
        Map<?, ?> death = brokersDeath();
        String queue = death == null ? added("queue") : queueOf(death);
        return queue != null ? queue : defaultQueue;
    }

    /**
     * The properties as they were, but for what would harm it on its way back. The user's id stays away, because the broker takes only
     * that of who publishes; the expiration, because the message would vanish if it has to wait; {@code CC}, because its copies went out
     * before; deaths among dead letters, because the broker drops what goes round in a circle.
     */
    BasicProperties original() {
        BasicProperties kept = message.getProperties();
        Map<String, Object> headers = new HashMap<>(kept.getHeaders() == null ? Map.of() : kept.getHeaders());
        Object deaths = elsewhere().isEmpty() ? null : elsewhere();
        if (brokersDeath() == null) {
            ADDED.forEach(name -> headers.remove(DeadLetterMessage.PREFIX + name));
            deaths = headers.remove(DeadLetterMessage.PREFIX + DeadLetterMessage.DEATHS);
        }
        headers.remove(DeadLetterMessage.DEATHS);
        if (deaths != null) {
            headers.put(DeadLetterMessage.DEATHS, deaths);
        }
        return kept.builder().headers(headers).expiration(null).build();
    }

    DeadLetter letter() {
        Map<?, ?> death = brokersDeath();
        String reason = added("reason");
        return death != null
                ? new DeadLetter(
                        null,
                        null,
                        null,
                        "given up by the broker: " + death.get("reason"),
                        null,
                        0,
                        death.get("time") instanceof Date date ? date.toInstant() : null,
                        MessageText.of(message),
                        message.getBody())
                : new DeadLetter(
                        added("consumer"),
                        added("message-key"),
                        kind(),
                        reason != null ? reason : "unknown",
                        added("sqlstate"),
                        attempts(),
                        time(),
                        MessageText.of(message),
                        message.getBody());
    }

    /** The latest; null if the broker gave it up nowhere but among dead letters, or not at all. */
    private @Nullable Map<?, ?> brokersDeath() {
        List<Map<?, ?>> deaths = elsewhere();
        return deaths.isEmpty() ? null : deaths.get(0);
    }

    private List<Map<?, ?>> elsewhere() {
        List<Map<?, ?>> deaths = new ArrayList<>();
        if (header(DeadLetterMessage.DEATHS) instanceof List<?> all) {
            for (Object one : all) {
                if (one instanceof Map<?, ?> death
                        && queueOf(death) != null
                        && !deadLetterQueues.contains(queueOf(death))) {
                    deaths.add(death);
                }
            }
        }
        return deaths;
    }

    private static @Nullable String queueOf(Map<?, ?> death) {
        Object queue = death.get("queue");
        return queue == null ? null : queue.toString();
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

    private @Nullable String added(String name) {
        Object value = header(DeadLetterMessage.PREFIX + name);
        return value == null ? null : value.toString();
    }

    private @Nullable Object header(String name) {
        Map<String, Object> headers = message.getProperties().getHeaders();
        return headers == null ? null : headers.get(name);
    }
}
