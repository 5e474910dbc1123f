package io.onceflux;

import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/**
 * A message as it arrived, and the one way to answer for it.
 *
 * <p>A source makes deliveries, an {@link IdempotentConsumer} handles and settles them. User code maps them
 * ({@link #decoding}) and does not settle them.
 *
 * @param <T> the payload
 */
public interface Delivery<T> {

    /**
     * The payload.
     *
     * @throws RuntimeException if it cannot be decoded; the same each time
     */
    T payload();

    /**
     * The id that the source found on the message (a message-id property, a header, a record key), or null if it has none.
     *
     * @throws RuntimeException if there is one and it cannot be used as a key, such as a list
     */
    @Nullable
    String id();

    /**
     * What the source keeps messages in order by, such as the key of a record; null where it keeps none. The consumer keeps that
     * order too, unless {@link ConsumerBuilder#orderedBy} says otherwise.
     */
    default @Nullable Object orderingKey() {
        return null;
    }

    /**
     * Tells the source what became of the message. A source acts on the first call only.
     *
     * @return completes once the source has taken the answer, for a dead letter once its copy is confirmed; an error if
     *     it could not, in which case the message will be delivered again
     */
    Mono<Void> settle(Settlement settlement);

    /**
     * Whether an answer can still reach the broker. False once the channel that brought the message is lost, or its partition is
     * given away: the broker delivers it again, so a delivery that is not current is dropped instead of started.
     */
    default boolean isCurrent() {
        return true;
    }

    /**
     * Tells the source that the message's turn has come. A source that has to give something up waits, for as long as it can, until
     * {@link #handlingEnded}. A consumer calls it before it looks at {@link #isCurrent}, so that one of the two sees the other.
     */
    default void handlingBegins() {}

    /** Tells the source that nothing more is done with the message: it is settled, let go, or cut off. */
    default void handlingEnded() {}

    /**
     * The header of a message that had no body, where an empty one is all that can be kept of it: its dead letter in a table is not replayed as
     * an empty message.
     */
    String NO_BODY = "x-onceflux-no-body";

    /**
     * The body of the message as it arrived, byte for byte; null where the source has none, and then a dead letter of it can be
     * kept by the source alone, not in a table.
     */
    default byte @Nullable [] body() {
        return null;
    }

    /** Headers and properties of the message as text, for people who look at a dead letter. */
    default Map<String, String> headers() {
        return Map.of();
    }

    /** Where the message came from, for logs and reasons: a queue and tag, a topic, partition and offset. */
    default String origin() {
        return "unknown origin";
    }

    /**
     * The same message with another payload, made when it is first asked for and at most once. A decoder that throws does
     * not end the stream: {@link #payload()} throws, and the message becomes {@link Outcome.Failed}.
     */
    default <R> Delivery<R> map(Decoder<? super T, ? extends R> decoder) {
        return new MappedDelivery<>(this, decoder);
    }

    /**
     * {@link #map} in the form that {@code Flux.map} takes.
     *
     * <pre>{@code
     * deliveries.map(Delivery.decoding(bytes -> mapper.readValue(bytes, OrderCompleted.class)))
     * }</pre>
     */
    static <A, B> Function<Delivery<A>, Delivery<B>> decoding(Decoder<? super A, ? extends B> decoder) {
        return delivery -> delivery.map(decoder);
    }

    /**
     * A message that no broker waits for, such as the body of an HTTP request; settling it does nothing.
     *
     * @param id the sender's id of the message, or null if the payload has it
     * @param payload the payload; bytes are its {@link #body} too, whatever it is mapped to
     */
    static <T> Delivery<T> of(@Nullable String id, T payload) {
        return new UnsettledDelivery<>(id, payload);
    }
}
