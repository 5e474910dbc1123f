package io.onceflux;

import java.time.Instant;
import java.util.Arrays;
import java.util.Objects;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** Finds the key of a delivery, and where it stands in the order. Whatever user code throws here is this message's failure, not the stream's. */
final class Identify<T> {

    private final String consumer;
    private final @Nullable Function<? super T, String> idOf;
    private final @Nullable Function<? super T, ?> orderOf;
    private final boolean followsSource;
    private final @Nullable Fingerprint<T> fingerprint;
    private final @Nullable Function<? super T, @Nullable Instant> sentAt;
    private final @Nullable ClaimTime<T> claimTime;

    /**
     * @param followsSource whether each message, usable or not, has its place in the source's order
     * @param fingerprint null if nobody asks for it
     * @param sentAt null if nobody asks for it
     * @param claimTime null if nobody asks for it
     */
    Identify(
            String consumer,
            @Nullable Function<? super T, String> idOf,
            @Nullable Function<? super T, ?> orderOf,
            boolean followsSource,
            @Nullable Fingerprint<T> fingerprint,
            @Nullable Function<? super T, @Nullable Instant> sentAt,
            @Nullable ClaimTime<T> claimTime) {
        this.consumer = consumer;
        this.idOf = idOf;
        this.orderOf = orderOf;
        this.followsSource = followsSource;
        this.fingerprint = fingerprint;
        this.sentAt = sentAt;
        this.claimTime = claimTime;
    }

    boolean followsSource() {
        return followsSource;
    }

    boolean takesIdsFromSource() {
        return idOf == null;
    }

    Message<T> identify(Delivery<T> delivery) {
        MessageKey key = null;
        try {
            String id = null;
            if (idOf == null) { // Before the payload: what cannot be decoded still has its key.
                id = present(delivery.id(), "the message has no id");
                key = MessageKey.of(consumer, id);
            }
            T payload = delivery.payload();
            if (id == null) {
                id = present(
                        call("identifiedBy", Objects.requireNonNull(idOf), payload),
                        "identifiedBy returned null for the message");
                key = MessageKey.of(consumer, id);
            }
            Object order = orderingKey(delivery, payload);
            return new Message<>(
                    delivery,
                    key,
                    null,
                    orderOf(order != null ? order : Objects.requireNonNull(key).id()),
                    order != null,
                    fingerprintOf(delivery, payload),
                    sentAt(payload),
                    claimTime == null ? null : claimTime.of(id, payload));
        } catch (Throwable e) { // An Error too: it is raised by this payload, and must harm no other message.
            return new Message<>(delivery, key, e, orderOfUnusable(delivery), false, null, null, null);
        }
    }

    private @Nullable Long fingerprintOf(Delivery<T> delivery, T payload) {
        return fingerprint == null ? null : fingerprint.of(delivery, payload);
    }

    private @Nullable Instant sentAt(T payload) {
        if (sentAt == null) {
            return null;
        }
        Instant sent = call("sentAt", sentAt, payload);
        if (sent == null) {
            throw new PermanentFailure("sentAt returned null for the message");
        }
        return sent;
    }

    /** Whether messages tell when they came to be. */
    boolean findsSentAt() {
        return sentAt != null;
    }

    private int orderOfUnusable(Delivery<T> delivery) {
        Object order = followsSource ? delivery.orderingKey() : null;
        return order == null ? spread(System.identityHashCode(delivery)) : orderOf(order);
    }

    /** The time that the claim of an id goes by, of which no more is known; null if nobody asks, or if it is not in the id. */
    @Nullable
    Instant claimTimeOf(String id) {
        return claimTime == null || !claimTime.isInId() ? null : claimTime.ofId(id);
    }

    private static String present(@Nullable String id, String sentenceForNone) {
        if (id == null) {
            throw new PermanentFailure(sentenceForNone);
        }
        return id;
    }

    /** By which messages are kept in order; null if only by their ids. */
    private @Nullable Object orderingKey(Delivery<T> delivery, T payload) {
        if (orderOf == null) {
            Object ofSource = delivery.orderingKey();
            if (ofSource == null && followsSource) {
                throw new PermanentFailure("the source gives the message no place in an order");
            }
            return ofSource;
        }
        Object order = call("orderedBy", orderOf, payload);
        if (order == null) {
            throw new PermanentFailure("orderedBy returned null for the message");
        }
        return order;
    }

    /** Arrays with equal elements are equal here, although they are not to {@code equals}. */
    private static int orderOf(Object order) {
        return spread(Arrays.deepHashCode(new Object[] {order}));
    }

    static <A, B> B call(String property, Function<A, B> users, A payload) {
        try {
            return users.apply(payload);
        } catch (PermanentFailure e) {
            throw e;
        } catch (Throwable e) {
            throw new PermanentFailure(property + " threw " + e, e);
        }
    }

    /** Mixes the bits (the finalizer of MurmurHash3): neighbouring numbers and short strings spread over all lanes. */
    private static int spread(int hash) {
        int h = hash;
        h = (h ^ (h >>> 16)) * 0x85ebca6b;
        h = (h ^ (h >>> 13)) * 0xc2b2ae35;
        return h ^ (h >>> 16);
    }
}
