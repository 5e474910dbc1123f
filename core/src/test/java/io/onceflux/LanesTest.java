package io.onceflux;

import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.run;
import static io.onceflux.Consumers.start;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.r2dbc.pool.ConnectionPool;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

class LanesTest {

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(10);

    /** Claims are kept in the table; the effect itself is as cheap as it can be, so that many keys fit into a test. */
    private static Effect<Order> cheap(Mono<Void> slowOnesEnd) {
        return (order, db) -> order.id().equals("slow") ? slowOnesEnd : Mono.empty();
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 20})
    void aSlowKeyHoldsUpItsOwnLaneOnlyWithinTheInFlightBudget(int maxBatch) {
        Sinks.Empty<Void> end = Sinks.empty();
        RecordingListener listener = new RecordingListener();
        IdempotentConsumer<Order> consumer = orders(cheap(end.asMono()))
                .listener(listener)
                .maxBatch(maxBatch)
                .maxInFlight(200)
                .build(pool);
        List<TestDelivery<Order>> deliveries = new ArrayList<>(TestDelivery.orders("k", 10_000));
        deliveries.add(0, TestDelivery.order("slow"));
        var outcomes = start(consumer, deliveries);

        await().untilAsserted(() -> assertThat(listener.outcomes)
                .as("what the other three lanes did meanwhile")
                .hasSizeGreaterThan(200));
        assertThat(outcomes).isNotDone();
        end.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);

        await().atMost(Duration.ofMinutes(2)).until(outcomes::isDone);
        assertThat(outcomes.join()).hasSize(10_001).allMatch(Outcome.Applied.class::isInstance);
        assertThat(database.claims()).isEqualTo(10_001);
    }

    @Test
    void messagesWithTheSameOrderingKeyAreAppliedInTheOrderOfTheirDelivery() {
        List<TestDelivery<Order>> deliveries = IntStream.range(0, 200)
                .mapToObj(n -> new TestDelivery<>("m" + n, new Order("m" + n, "customer-" + n % 7, n)))
                .toList();
        run(orders(LanesTest::unevenly).orderedBy(Order::customer).build(pool), deliveries);

        Map<Object, Long> last = new HashMap<>();
        for (Map<String, Object> row : database.rows("SELECT customer_id, points FROM point_ledger ORDER BY entry")) {
            long number = (Long) Objects.requireNonNull(row.get("points"));
            assertThat(number).isGreaterThan(last.getOrDefault(row.get("customer_id"), -1L));
            last.put(row.get("customer_id"), number);
        }
        assertThat(last).hasSize(7);
        database.assertAppliedOnce(200);
    }

    private static Mono<Void> unevenly(Order order, DatabaseClient db) {
        return Mono.delay(Duration.ofMillis(order.points() % 5)).then(order.note(db));
    }

    @Test
    void aMessageThatFailsAndIsTriedAgainIsNotOvertakenInItsLane() {
        List<String> calls = new CopyOnWriteArrayList<>();
        Effect<Order> failsTwice = (order, db) -> {
            calls.add(order.id());
            long tries = calls.stream().filter(order.id()::equals).count();
            return tries < 3 ? Mono.error(new IllegalStateException("again")) : order.note(db);
        };
        run(orders(failsTwice).orderedBy(order -> "one lane").build(pool), TestDelivery.orders("", 3));
        assertThat(calls).containsExactly("0", "0", "0", "1", "1", "1", "2", "2", "2");
        database.assertAppliedOnce(3);
    }

    @Test
    void anEffectThatNeedsASecondConnectionIsBoundedAndTheConsumerRecovers() {
        ConnectionPool five = database.pool(5);
        Effect<Order> greedy = (order, db) -> order.id().startsWith("greedy")
                ? order.note(db)
                        .then(Mono.usingWhen(
                                five.create(),
                                connection -> Mono.delay(Duration.ofMillis(20)),
                                connection -> connection.close()))
                : order.note(db);
        List<TestDelivery<Order>> deliveries = new ArrayList<>(TestDelivery.orders("greedy", 20));
        deliveries.addAll(TestDelivery.orders("modest", 10));
        List<Outcome> outcomes = run(
                orders(greedy)
                        .lanes(4)
                        .timeLimit(Duration.ofSeconds(2))
                        .lockTimeout(Duration.ofSeconds(1))
                        .build(five),
                deliveries);
        assertThat(outcomes).hasSize(30);
        assertThat(deliveries).noneMatch(delivery -> delivery.settlements().isEmpty());
        database.assertAppliedOnce(
                outcomes.stream().filter(Outcome.Applied.class::isInstance).count());
    }
}
