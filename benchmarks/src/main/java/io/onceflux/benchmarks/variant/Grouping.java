package io.onceflux.benchmarks.variant;

import io.onceflux.ConsumerBuilder;
import io.onceflux.Effect;
import io.onceflux.benchmarks.scenario.Order;

/**
 * What is in one transaction of a consumer. This is the one place that knows what the core can do: group commit is measured as
 * soon as {@link #describe} asks for it and {@link #isThere} says so.
 */
enum Grouping {
    PER_MESSAGE,
    GROUPED,
    SET_BASED;

    static final boolean RECENT_KEYS_ARE_THERE = false;

    boolean isThere() {
        return this == PER_MESSAGE;
    }

    /** Adds the effect, and how many messages share a transaction. */
    ConsumerBuilder<Order> describe(ConsumerBuilder<Order> consumer, int batch, Effect<Order> ofOne) {
        return switch (this) {
            case PER_MESSAGE -> consumer.effect(ofOne);
            case GROUPED, SET_BASED ->
                throw new UnsupportedOperationException(
                        "the core has no group commit yet, so there are no batches of " + batch);
        };
    }
}
