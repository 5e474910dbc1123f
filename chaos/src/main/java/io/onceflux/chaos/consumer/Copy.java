package io.onceflux.chaos.consumer;

import static java.util.Objects.requireNonNull;

import io.onceflux.Delivery;
import java.util.Comparator;

/**
 * One publication of a message. The number is told by a header and is no part of the key: to the consumer all copies are the same
 * message, to the checker each is one that must not be lost.
 *
 * @param number counts the publications of this message from 1
 */
public record Copy(String id, int number) implements Comparable<Copy> {

    public static final String HEADER = "copy";

    private static final Comparator<Copy> ORDER = Comparator.comparing(Copy::id).thenComparingInt(Copy::number);

    static Copy of(Delivery<?> delivery) {
        String told = delivery.headers().get(ChaosConsumer.ID);
        return new Copy(
                told != null ? told : requireNonNull(delivery.id()),
                Integer.parseInt(requireNonNull(delivery.headers().get(HEADER))));
    }

    @Override
    public int compareTo(Copy other) {
        return ORDER.compare(this, other);
    }

    @Override
    public String toString() {
        return id + " copy " + number;
    }
}
