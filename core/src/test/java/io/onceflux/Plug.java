package io.onceflux;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/** A first message whose effect waits until all the others have queued up behind it, so that a batch is what the test says. */
final class Plug {

    private final Sinks.Empty<Void> pulled = Sinks.empty();

    List<TestDelivery<Order>> before(List<TestDelivery<Order>> deliveries) {
        List<TestDelivery<Order>> all = new ArrayList<>();
        all.add(TestDelivery.order("plug"));
        all.addAll(deliveries);
        return all;
    }

    Effect<Order> then(Effect<Order> effect) {
        return (order, db) -> waitIfPlug(order).thenMany(Flux.defer(() -> effect.apply(order, db)));
    }

    BatchEffect<Order> thenAll(BatchEffect<Order> effect) {
        return (orders, db) -> waitIfPlug(orders.get(0)).thenMany(Flux.defer(() -> effect.apply(orders, db)));
    }

    private Mono<Void> waitIfPlug(Order order) {
        return order.id().equals("plug") ? pulled.asMono() : Mono.empty();
    }

    /** All that have queued up go on. */
    void pull() {
        pulled.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);
    }

    CompletableFuture<List<Outcome>> start(IdempotentConsumer<Order> consumer, List<TestDelivery<Order>> deliveries) {
        CompletableFuture<Void> allAreTaken = new CompletableFuture<>();
        CompletableFuture<List<Outcome>> outcomes = Flux.<Delivery<Order>>fromIterable(deliveries)
                .doOnComplete(() -> allAreTaken.complete(null))
                .transform(consumer)
                .collectList()
                .toFuture();
        allAreTaken.orTimeout(30, TimeUnit.SECONDS).join();
        return outcomes;
    }

    List<Outcome> run(IdempotentConsumer<Order> consumer, List<TestDelivery<Order>> deliveries) {
        CompletableFuture<List<Outcome>> outcomes = start(consumer, deliveries);
        pull();
        return Objects.requireNonNull(Mono.fromFuture(outcomes).block(Duration.ofSeconds(60)));
    }
}
