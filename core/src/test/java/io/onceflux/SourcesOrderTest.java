package io.onceflux;

import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.run;
import static io.onceflux.Consumers.start;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.r2dbc.pool.ConnectionPool;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/** What a consumer takes from its source besides the message: the order, and when to tell that work begins and ends. */
class SourcesOrderTest {

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(10);

    private static List<TestDelivery<Order>> keptInOrder(int count) {
        return IntStream.range(0, count)
                .mapToObj(i -> TestDelivery.of(new Order("%03d".formatted(i), "c", 1))
                        .keptInOrderBy("key".getBytes(UTF_8))) // Equal arrays, not the same.
                .toList();
    }

    /** The earlier, the slower. */
    private static Mono<Void> slowest(Order order, org.springframework.r2dbc.core.DatabaseClient db) {
        return Mono.delay(Duration.ofMillis(20 - Long.parseLong(order.id()))).then(order.note(db));
    }

    @Test
    void messagesWithTheSourcesOrderingKeyKeepTheirOrder() {
        run(orders(SourcesOrderTest::slowest).build(pool), keptInOrder(20));
        assertThat(database.texts("SELECT order_id FROM point_ledger ORDER BY entry"))
                .hasSize(20)
                .isSorted();
    }

    @Test
    void orderedByComesBeforeTheSourcesOrder() {
        run(orders(SourcesOrderTest::slowest).orderedBy(Order::id).build(pool), keptInOrder(20));
        assertThat(database.texts("SELECT order_id FROM point_ledger ORDER BY entry"))
                .hasSize(20)
                .isNotEqualTo(database.texts("SELECT order_id FROM point_ledger ORDER BY order_id"));
    }

    @Test
    void theSourceIsToldWhenAMessagesTurnComesAndWhenNothingMoreIsDoneWithIt() {
        Sinks.Empty<Void> go = Sinks.empty();
        TestDelivery<Order> first = TestDelivery.order("1").keptInOrderBy("k");
        TestDelivery<Order> queued = TestDelivery.order("2").keptInOrderBy("k");
        TestDelivery<Order> lost = TestDelivery.order("3").keptInOrderBy("k");
        TestDelivery<Order> failing = TestDelivery.order("4").keptInOrderBy("k");
        lost.channelLost();
        CompletableFuture<List<Outcome>> outcomes = start(
                orders((order, db) -> order.id().equals("4")
                                ? Mono.error(new PermanentFailure("refused"))
                                : go.asMono().then(order.apply(db)))
                        .build(pool),
                List.of(first, queued, lost, failing));
        await().until(() -> first.handling().equals(List.of("begins")));
        assertThat(queued.handling()).isEmpty();

        go.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);
        await().until(outcomes::isDone);
        assertThat(List.of(first, queued, lost, failing))
                .allSatisfy(delivery -> assertThat(delivery.handling()).containsExactly("begins", "ended"));
        assertThat(failing.isDeadLettered()).isTrue();
        assertThat(lost.settlements()).isEmpty();
    }
}
