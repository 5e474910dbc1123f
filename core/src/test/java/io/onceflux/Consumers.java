package io.onceflux;

import io.r2dbc.spi.ConnectionFactory;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import reactor.core.publisher.Flux;

/** Consumers of orders, with pauses that are short enough for a test. */
final class Consumers {

    private static final Duration LIMIT = Duration.ofSeconds(60);

    private Consumers() {}

    static FailurePolicy.Builder policy() {
        return FailurePolicy.builder().backoff(Duration.ofMillis(5), Duration.ofMillis(100));
    }

    /** A consumer named "loyalty" that finds the id on the message. */
    static ConsumerBuilder<Order> orders(Effect<Order> effect) {
        return named("loyalty", effect);
    }

    static ConsumerBuilder<Order> named(String name, Effect<Order> effect) {
        return IdempotentConsumer.<Order>named(name)
                .identifiedByMessageId()
                .lanes(4)
                .failurePolicy(policy().build())
                .effect(effect);
    }

    /** One lane that takes whatever has queued up behind its first message. */
    static ConsumerBuilder<Order> batches(int maxBatch, Effect<Order> effect) {
        return orders(effect).lanes(1).maxBatch(maxBatch).maxInFlight(10_000);
    }

    /** The same with an effect over all messages of a batch. */
    static ConsumerBuilder<Order> setBased(int maxBatch, BatchEffect<Order> effect) {
        return batches(maxBatch, Order::apply).batchEffect(effect);
    }

    static IdempotentConsumer<Order> loyalty(ConnectionFactory connections) {
        return orders(Order::apply).build(connections);
    }

    static Flux<Delivery<Order>> flux(Collection<TestDelivery<Order>> deliveries) {
        return Flux.fromIterable(deliveries);
    }

    /** Sends the deliveries through, and goes on meanwhile. */
    static CompletableFuture<List<Outcome>> start(
            IdempotentConsumer<Order> consumer, Collection<TestDelivery<Order>> deliveries) {
        return flux(deliveries).transform(consumer).collectList().toFuture();
    }

    /** Sends the deliveries through and waits for all outcomes. */
    static List<Outcome> run(IdempotentConsumer<Order> consumer, Collection<TestDelivery<Order>> deliveries) {
        return Objects.requireNonNull(
                flux(deliveries).transform(consumer).collectList().block(LIMIT));
    }

    static Outcome run(IdempotentConsumer<Order> consumer, TestDelivery<Order> delivery) {
        return run(consumer, List.of(delivery)).get(0);
    }

    static Failure failureOf(Outcome outcome) {
        return ((Outcome.Failed) outcome).failure();
    }
}
