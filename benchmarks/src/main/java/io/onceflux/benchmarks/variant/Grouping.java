package io.onceflux.benchmarks.variant;

import io.onceflux.ConsumerBuilder;
import io.onceflux.Effect;
import io.onceflux.benchmarks.scenario.Credit;
import io.onceflux.benchmarks.scenario.Order;

/** What is in one transaction of a consumer. */
enum Grouping {
    PER_MESSAGE,
    GROUPED,
    SET_BASED;

    /** Adds the effect, and how many messages share a transaction. */
    ConsumerBuilder<Order> describe(ConsumerBuilder<Order> consumer, int batch, Effect<Order> ofOne) {
        return switch (this) {
            case PER_MESSAGE -> consumer.effect(ofOne);
            case GROUPED -> consumer.effect(ofOne).maxBatch(batch);
            case SET_BASED -> consumer.batchEffect(Credit::all).maxBatch(batch);
        };
    }
}
