package io.onceflux;

import static io.onceflux.Consumers.loyalty;
import static org.assertj.core.api.Assertions.assertThat;

import io.r2dbc.pool.ConnectionPool;
import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Callers of {@code process} that go away, as HTTP clients do, at every moment of a transaction. */
class CancelledCallsTest {

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(17);

    @Test
    void callersThatGoAwayAtAnyMomentCostNoConnectionAndLeaveNoHalfEffect() {
        IdempotentConsumer<Order> consumer = loyalty(pool);
        assertThat(consumer.process(Delivery.of("first", Order.of("first"))).block(Duration.ofSeconds(10)))
                .isInstanceOf(Outcome.Applied.class);

        Flux.range(0, 6_000)
                .flatMap(i -> call(consumer, "order-" + i), 16)
                .then()
                .block(Duration.ofMinutes(2));

        database.assertNothingLeaked();
        assertThat(database.rows("""
                        SELECT message_key, order_id, customer_id
                        FROM processed_messages
                        FULL JOIN point_ledger ON order_id = message_key
                        FULL JOIN balances USING (customer_id)
                        WHERE message_key IS NULL OR order_id IS NULL OR customer_id IS NULL"""))
                .as("claims, ledger rows and balances that stand alone")
                .isEmpty();
        assertThat(consumer.process(Delivery.of("last", Order.of("last"))).block(Duration.ofSeconds(10)))
                .isInstanceOf(Outcome.Applied.class);
    }

    private static Mono<Void> call(IdempotentConsumer<Order> consumer, String id) {
        Duration patience = Duration.ofNanos(ThreadLocalRandom.current().nextLong(12_000_000));
        return consumer.process(Delivery.of(id, Order.of(id)))
                .takeUntilOther(Mono.delay(patience))
                .then();
    }
}
