package io.onceflux;

import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/** A message that no broker waits for. */
record UnsettledDelivery<T>(@Nullable String id, T payload) implements Delivery<T> {

    @Override
    public Mono<Void> settle(Settlement settlement) {
        return Mono.empty();
    }

    @Override
    public byte @Nullable [] body() {
        return payload instanceof byte[] bytes ? bytes : null;
    }

    @Override
    public String origin() {
        return "a direct call";
    }
}
