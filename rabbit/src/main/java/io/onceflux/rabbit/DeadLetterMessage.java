package io.onceflux.rabbit;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Delivery;
import io.onceflux.Failure;
import io.onceflux.Settlement;
import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A message as a dead letter: its body, headers and properties as they were, and headers that say why.
 *
 * <p>Four things cannot stay in their place and are kept in headers instead. The broker would act on three: the expiration (the dead
 * letter would vanish), the user id (the broker refuses another's), and {@code CC} (copies would go out). The fourth is {@code x-death},
 * so that a dead letter which has one is known to be the broker's. Headers of a sender that look like ours are left out.
 *
 * <p>All properties of a message must fit into one frame of the connection. Where the original's leave too little room, the
 * dead letter says less: first a short form, then only from which queue it came, at last not even that.
 */
final class DeadLetterMessage {

    static final String PREFIX = "x-onceflux-";
    private static final int PERSISTENT = 2;
    private static final int SHORT_REASON = 100;
    private static final String COPIES = "CC";
    static final String DEATHS = "x-death";

    /** Nobody acts on these, and a message that was replayed has them from its first dead letter. */
    private static final Set<String> HARMLESS = Set.of(PREFIX + COPIES, PREFIX + "expiration", PREFIX + "user-id");

    private DeadLetterMessage() {}

    /**
     * The richest description that fits.
     *
     * @param frameMax the largest frame of the connection in bytes; 0 for no limit
     */
    static BasicProperties properties(Delivery original, String queue, Settlement.DeadLetter why, int frameMax)
            throws IOException {
        BasicProperties was = original.getProperties();
        Map<String, Object> moved = moved(was);
        List<Map<String, Object>> descriptions = List.of(
                union(moved, union(origin(original, queue), full(why.consumer(), why.failure()))),
                union(moved, union(from(queue), brief(why.consumer(), why.failure()))),
                union(moved, from(queue)),
                from(queue),
                moved,
                Map.of());
        for (Map<String, Object> description : descriptions) {
            BasicProperties described =
                    inert(was, description).deliveryMode(PERSISTENT).build();
            if (fits(described, original.getBody().length, frameMax)) {
                return described;
            }
        }
        return inert(was, Map.of()).build(); // An original without a delivery mode may leave no room for one.
    }

    /** As the client itself decides whether it sends a message. */
    private static boolean fits(BasicProperties properties, int bodySize, int frameMax) throws IOException {
        return frameMax == 0 || properties.toFrame(0, bodySize).size() <= frameMax;
    }

    /** The original with more headers, and without what the broker would act on. */
    private static BasicProperties.Builder inert(BasicProperties was, Map<String, Object> added) {
        Map<String, Object> headers = new HashMap<>(was.getHeaders() == null ? Map.of() : was.getHeaders());
        headers.keySet()
                .removeIf(name -> name.equals(COPIES)
                        || name.equals(DEATHS)
                        || (name.startsWith(PREFIX) && !HARMLESS.contains(name)));
        headers.putAll(added);
        return was.builder().headers(headers).expiration(null).userId(null);
    }

    private static Map<String, Object> moved(BasicProperties was) {
        Map<String, Object> headers = new HashMap<>();
        put(headers, COPIES, was.getHeaders() == null ? null : was.getHeaders().get(COPIES));
        put(headers, DEATHS, was.getHeaders() == null ? null : was.getHeaders().get(DEATHS));
        put(headers, "expiration", was.getExpiration());
        put(headers, "user-id", was.getUserId());
        return headers;
    }

    private static Map<String, Object> origin(Delivery original, String queue) {
        Map<String, Object> headers = from(queue);
        put(headers, "exchange", original.getEnvelope().getExchange());
        put(headers, "routing-key", original.getEnvelope().getRoutingKey());
        return headers;
    }

    /** A queue of dead letters may be that of several consumers. */
    private static Map<String, Object> from(String queue) {
        Map<String, Object> headers = new HashMap<>();
        put(headers, "queue", queue);
        return headers;
    }

    private static Map<String, Object> full(String consumer, Failure failure) {
        Map<String, Object> headers = brief(consumer, failure);
        put(headers, "reason", failure.reason());
        put(headers, "time", failure.time().toString());
        put(
                headers,
                "message-key",
                failure.messageKey() == null ? null : failure.messageKey().id());
        return headers;
    }

    private static Map<String, Object> brief(String consumer, Failure failure) {
        String reason = failure.reason();
        Map<String, Object> headers = new HashMap<>();
        put(headers, "consumer", consumer);
        put(headers, "kind", failure.kind().name());
        put(headers, "reason", reason.substring(0, Math.min(reason.length(), SHORT_REASON)));
        put(headers, "attempts", failure.attempts());
        put(headers, "sqlstate", failure.sqlState());
        return headers;
    }

    private static void put(Map<String, Object> headers, String name, @Nullable Object value) {
        if (value != null) {
            headers.put(PREFIX + name, value);
        }
    }

    private static Map<String, Object> union(Map<String, Object> some, Map<String, Object> more) {
        Map<String, Object> all = new HashMap<>(some);
        all.putAll(more);
        return all;
    }
}
