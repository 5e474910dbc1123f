package io.onceflux;

import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.policy;
import static org.assertj.core.api.Assertions.assertThat;

import io.r2dbc.pool.ConnectionPool;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * {@code onErrorContinue} changes operators upstream of it, through the Reactor context. Users add it so that a stream never dies;
 * it must not reach into a transaction, where an error that is skipped would be a commit.
 */
class ErrorContinueTest {

    private static final Duration LIMIT = Duration.ofSeconds(20);

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(10);
    private final Set<String> tried = ConcurrentHashMap.newKeySet();

    private IdempotentConsumer<Order> consumer(Effect<Order> effect) {
        return orders(effect).failurePolicy(policy().maxAttempts(2).build()).build(pool);
    }

    private Mono<Void> failsOnceAfterItsWrite(Order order, DatabaseClient db) {
        return order.apply(db)
                .then(Mono.defer(() -> tried.add(order.id())
                        ? Mono.error(new IllegalStateException("the first time"))
                        : Mono.empty()));
    }

    @Test
    void behindAConsumerItChangesNothing() {
        List<TestDelivery<Order>> deliveries = TestDelivery.orders("o", 20);
        Flux.<Delivery<Order>>fromIterable(deliveries)
                .transform(consumer(this::failsOnceAfterItsWrite))
                .onErrorContinue((error, value) -> {})
                .then()
                .block(LIMIT);

        assertThat(deliveries).allMatch(TestDelivery::isAcknowledged);
        database.assertAppliedOnce(20);
    }

    @Test
    void aroundDirectCallsItChangesNothing() {
        IdempotentConsumer<Order> consumer = consumer(this::failsOnceAfterItsWrite);
        List<Outcome> outcomes = Objects.requireNonNull(Flux.fromIterable(TestDelivery.orders("o", 5))
                .flatMap(consumer::process)
                .onErrorContinue((error, value) -> {})
                .collectList()
                .block(LIMIT));

        assertThat(outcomes).hasSize(5).allMatch(Outcome.Applied.class::isInstance);
        database.assertAppliedOnce(5);
    }

    @Test
    void anEffectThatAlwaysFailsIsNeverCommitted() {
        List<TestDelivery<Order>> deliveries = TestDelivery.orders("o", 3);
        Flux.<Delivery<Order>>fromIterable(deliveries)
                .transform(consumer((order, db) -> order.apply(db).then(Mono.error(new PermanentFailure("never")))))
                .onErrorContinue((error, value) -> {})
                .then()
                .block(LIMIT);

        assertThat(deliveries).allMatch(TestDelivery::isDeadLettered);
        database.assertAppliedOnce(0);
    }

    @Test
    void withinAnEffectItIsTheEffectsOwn() {
        Effect<Order> effect = (order, db) -> Flux.just(1, 2, 3)
                .concatMap(n -> n == 2 ? Mono.error(new IllegalStateException("skipped")) : Mono.just(n))
                .onErrorContinue((error, value) -> {})
                .then(order.apply(db));
        Flux.<Delivery<Order>>fromIterable(TestDelivery.orders("o", 2))
                .transform(consumer(effect))
                .then()
                .block(LIMIT);
        database.assertAppliedOnce(2);
    }
}
