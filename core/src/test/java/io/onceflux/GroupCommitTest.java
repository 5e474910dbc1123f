package io.onceflux;

import static io.onceflux.Consumers.batches;
import static io.onceflux.Consumers.failureOf;
import static io.onceflux.Consumers.flux;
import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.run;
import static io.onceflux.Consumers.setBased;
import static io.onceflux.Consumers.start;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.postgres.CheckedClaimTable;
import io.onceflux.postgres.ClaimTable;
import io.onceflux.postgres.NewClaim;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.spi.Connection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/** The rules of a batch that goes well: what is gathered, claimed and applied together. */
class GroupCommitTest {

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(12);
    private final RecordingListener told = new RecordingListener();
    private final Plug plug = new Plug();

    @Test
    void whatQueuesUpBehindAMessageIsClaimedAndAppliedInOneTransaction() {
        List<TestDelivery<Order>> deliveries = plug.before(TestDelivery.orders("m", 100));
        List<Outcome> outcomes = plug.run(batches(64, plug.then(Order::apply)).build(pool), deliveries);

        assertThat(outcomes).hasSize(101).allMatch(Outcome.Applied.class::isInstance);
        assertThat(deliveries).allMatch(TestDelivery::isAcknowledged);
        assertThat(database.transactions()).as("1, 64 and 36 messages").isEqualTo(3);
        database.assertAppliedOnce(101);
    }

    @Test
    void aBatchEffectGetsTheFreshMessagesOfABatchAtOnce() {
        run(orders(Order::apply).build(pool), TestDelivery.order("m3"));
        List<List<String>> calls = new CopyOnWriteArrayList<>();
        List<TestDelivery<Order>> deliveries = plug.before(TestDelivery.orders("m", 10));
        List<Outcome> outcomes = plug.run(
                setBased(64, plug.thenAll((orders, db) -> {
                            calls.add(orders.stream().map(Order::id).toList());
                            return Order.applyAll(orders, db);
                        }))
                        .build(pool),
                deliveries);

        assertThat(calls)
                .containsExactly(List.of("plug"), List.of("m0", "m1", "m2", "m4", "m5", "m6", "m7", "m8", "m9"));
        assertThat(outcomes).filteredOn(Outcome.Duplicate.class::isInstance).hasSize(1);
        assertThat(deliveries).allMatch(TestDelivery::isAcknowledged);
        database.assertAppliedOnce(11);
    }

    @Test
    void aBatchEffectWithoutFreshMessagesIsNotCalled() {
        List<TestDelivery<Order>> deliveries = TestDelivery.orders("m", 10);
        run(orders(Order::apply).build(pool), deliveries);
        AtomicInteger calls = new AtomicInteger();
        List<Outcome> outcomes = run(
                setBased(64, (orders, db) -> {
                            calls.incrementAndGet();
                            return Order.applyAll(orders, db);
                        })
                        .build(pool),
                TestDelivery.orders("m", 10));
        assertThat(outcomes).hasSize(10).allMatch(Outcome.Duplicate.class::isInstance);
        assertThat(calls).hasValue(0);
    }

    @Test
    void nothingWaitsForABatchToFill() {
        Sinks.Many<Delivery<Order>> source = Sinks.many().unicast().onBackpressureBuffer();
        IdempotentConsumer<Order> consumer =
                batches(1_000, Order::apply).listener(told).build(pool);
        CompletableFuture<List<Outcome>> outcomes =
                source.asFlux().transform(consumer).collectList().toFuture();
        for (int i = 0; i < 3; i++) {
            source.emitNext(TestDelivery.order("m" + i), Sinks.EmitFailureHandler.FAIL_FAST);
            int sent = i + 1;
            await().until(() -> told.outcomes.size() == sent);
        }
        source.emitComplete(Sinks.EmitFailureHandler.FAIL_FAST);
        assertThat(outcomes.join()).hasSize(3);
        assertThat(database.transactions()).isEqualTo(3);
    }

    @Test
    void copiesWithinABatchShareTheOutcomeOfTheFirst() {
        run(orders(Order::apply).build(pool), TestDelivery.order("c"));
        List<TestDelivery<Order>> deliveries =
                plug.before(List.of(order("a"), order("a"), order("b"), order("a"), order("c")));
        List<Outcome> outcomes =
                plug.run(batches(64, plug.then(Order::apply)).listener(told).build(pool), deliveries);

        assertThat(outcomes.stream()
                        .map(outcome -> outcome.getClass().getSimpleName() + " "
                                + Objects.requireNonNull(outcome.key()).id()))
                .containsExactlyInAnyOrder(
                        "Applied plug", "Applied a", "Duplicate a", "Applied b", "Duplicate a", "Duplicate c");
        assertThat(deliveries).allMatch(TestDelivery::isAcknowledged);
        assertThat(told.retries).isEmpty();
        database.assertAppliedOnce(4);
    }

    @Test
    void effectsOfAnOrderingKeyRunInTheOrderOfArrivalAndKeysInOneOrderForAll() {
        List<TestDelivery<Order>> deliveries = new ArrayList<>();
        for (int n = 0; n < 60; n++) {
            deliveries.add(new TestDelivery<>("m" + n, new Order("m" + n, "customer-" + n % 7, n)));
        }
        List<List<Object>> orders = new ArrayList<>();
        for (boolean reversed : List.of(false, true)) {
            database.empty();
            List<TestDelivery<Order>> sent = new ArrayList<>(deliveries);
            if (reversed) {
                Collections.reverse(sent);
            }
            Plug first = new Plug();
            first.run(
                    batches(64, first.then(Order::note))
                            .orderedBy(Order::customer)
                            .build(pool),
                    first.before(sent));
            List<Map<String, Object>> rows = database.rows(
                    "SELECT customer_id, points FROM point_ledger WHERE order_id <> 'plug' ORDER BY entry");
            assertInOrder(rows, reversed);
            orders.add(rows.stream()
                    .map(row -> Objects.requireNonNull(row.get("customer_id")))
                    .distinct()
                    .toList());
        }
        assertThat(orders.get(0)).as("customers, whatever came first").isEqualTo(orders.get(1));
    }

    private static void assertInOrder(List<Map<String, Object>> rows, boolean reversed) {
        Map<Object, Long> last = new HashMap<>();
        for (Map<String, Object> row : rows) {
            long number = (Long) Objects.requireNonNull(row.get("points"));
            Long before = last.put(Objects.requireNonNull(row.get("customer_id")), number);
            if (before != null) {
                assertThat(reversed ? before : number).isGreaterThan(reversed ? number : before);
            }
        }
        assertThat(last).hasSize(7);
    }

    @Test
    void withoutAnOrderingKeyEffectsRunInTheOrderOfArrival() {
        List<TestDelivery<Order>> deliveries = plug.before(TestDelivery.orders("m", 50));
        plug.run(batches(64, plug.then(Order::note)).build(pool), deliveries);
        assertThat(database.texts("SELECT order_id FROM point_ledger ORDER BY entry"))
                .containsExactlyElementsOf(deliveries.stream()
                        .map(delivery -> delivery.payload().id())
                        .toList());
    }

    /** Two instances get the same thousand ids, one of them backwards. */
    @Test
    void theSameIdsInOppositeOrderOnTwoInstancesDoNotDeadlock() {
        List<TestDelivery<Order>> ascending = TestDelivery.orders("m", 1_000);
        List<TestDelivery<Order>> descending = new ArrayList<>(TestDelivery.orders("m", 1_000));
        Collections.reverse(descending);
        List<CompletableFuture<List<Outcome>>> both = List.of(
                start(batches(500, Order::apply).lanes(2).listener(told).build(pool), ascending),
                start(setBased(500, Order::applyAll).lanes(2).listener(told).build(database.pool(5)), descending));
        await().atMost(Duration.ofSeconds(60)).until(() -> both.stream().allMatch(CompletableFuture::isDone));

        List<Outcome> outcomes = Flux.fromIterable(both)
                .flatMapIterable(CompletableFuture::join)
                .collectList()
                .block();
        assertThat(outcomes).hasSize(2_000).allMatch(Outcome::isDone);
        assertThat(ascending).allMatch(TestDelivery::isAcknowledged);
        assertThat(descending).allMatch(TestDelivery::isAcknowledged);
        assertThat(told.sqlStatesOfRetries()).doesNotContain("40P01");
        database.assertAppliedOnce(1_000);
    }

    /** Both wait for a key in the middle, with what is before it claimed; then each would wait for the other. */
    @Test
    void claimsOfTheSameIdsAreMadeInOneOrderHoweverTheyArrive() {
        List<Connection> connections = Flux.range(0, 3)
                .concatMap(n -> database.direct().create())
                .<Connection>cast(Connection.class)
                .collectList()
                .blockOptional()
                .orElseThrow();
        try {
            CheckedClaimTable table = ClaimTable.processedMessages()
                    .check(connections.get(0))
                    .blockOptional()
                    .orElseThrow();
            connections.forEach(
                    connection -> Mono.from(connection.beginTransaction()).block());
            List<String> ids =
                    IntStream.range(0, 100).mapToObj(n -> "m" + (100 + n)).toList();
            List<String> backwards = new ArrayList<>(ids);
            Collections.reverse(backwards);
            Duration wait = Duration.ofSeconds(30);
            table.claim(connections.get(0), "loyalty", claims(List.of("m150")), wait)
                    .then()
                    .block();
            List<CompletableFuture<Set<String>>> both = List.of(
                    claimed(table, connections.get(1), ids, wait), claimed(table, connections.get(2), backwards, wait));
            await().until(() ->
                    database.count("SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'")
                            == 2);
            Mono.from(connections.get(0).rollbackTransaction()).block();

            assertThat(both).map(one -> one.join().size()).containsExactlyInAnyOrder(100, 0);
        } finally {
            connections.forEach(connection -> Mono.from(connection.close()).block());
        }
    }

    private static List<NewClaim> claims(List<String> ids) {
        return ids.stream().map(id -> new NewClaim(id, null, null)).toList();
    }

    private static CompletableFuture<Set<String>> claimed(
            CheckedClaimTable table, Connection connection, List<String> ids, Duration wait) {
        return table.claim(connection, "loyalty", claims(ids), wait)
                .flatMap(taken -> Mono.from(connection.commitTransaction()).thenReturn(taken.fresh()))
                .toFuture();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void instancesThatTouchTheSameRowsInBatchesMeetThemInOneOrder(boolean orderIsTheSources) {
        List<List<TestDelivery<Order>>> halves = List.of(forCustomers("x", false), forCustomers("y", true));
        if (orderIsTheSources) {
            halves.forEach(half -> half.forEach(
                    delivery -> delivery.keptInOrderBy(delivery.payload().customer())));
        }
        List<CompletableFuture<List<Outcome>>> both = halves.stream()
                .map(half -> {
                    ConsumerBuilder<Order> consumer = batches(100, Order::apply).listener(told);
                    return start(
                            (orderIsTheSources ? consumer : consumer.orderedBy(Order::customer)).build(pool), half);
                })
                .toList();
        assertThat(both.stream().mapToInt(half -> half.join().size()).sum()).isEqualTo(2_000);
        assertThat(told.sqlStatesOfRetries()).doesNotContain("40P01");
        database.assertAppliedOnce(2_000);
    }

    private static List<TestDelivery<Order>> forCustomers(String prefix, boolean backwards) {
        return IntStream.range(0, 1_000)
                .mapToObj(n -> {
                    int customer = (backwards ? 999 - n : n) % 20;
                    return TestDelivery.of(new Order(prefix + n, "customer-" + customer, 1));
                })
                .toList();
    }

    @Test
    void whatTheSourceAnswersToOneOfABatchSaysNothingAboutTheOthers() {
        List<TestDelivery<Order>> deliveries = plug.before(TestDelivery.orders("m", 4));
        TestDelivery<Order> refused = deliveries.get(2).answering(Mono.error(new IllegalStateException("refused")));
        TestDelivery<Order> unanswered = deliveries.get(3).answering(Mono.never());
        List<Delivery<?>> settled = new CopyOnWriteArrayList<>();
        List<Outcome> outcomes = plug.run(
                batches(64, plug.then(Order::apply))
                        .settleLimit(Duration.ofMillis(300))
                        .listener(told)
                        .listener(new ConsumerListener() {
                            @Override
                            public void onSettled(Delivery<?> delivery, Settlement settlement) {
                                settled.add(delivery);
                            }
                        })
                        .build(pool),
                deliveries);

        assertThat(outcomes).hasSize(5).allMatch(Outcome.Applied.class::isInstance);
        assertThat(settled).containsExactlyInAnyOrder(deliveries.get(0), deliveries.get(1), deliveries.get(4));
        assertThat(told.unsettled).containsExactly(refused, unanswered);
        assertThat(told.settleFailures).hasSize(2);
        assertThat(told.settleFailures.get(1)).isInstanceOf(TimeoutException.class);
        database.assertAppliedOnce(5);
    }

    @Test
    void aCallerWhoWaitsIsServedByABatchEffectToo() {
        IdempotentConsumer<Order> consumer = setBased(64, Order::applyAll).build(pool);
        assertThat(consumer.process(order("1")).block()).isInstanceOf(Outcome.Applied.class);
        assertThat(consumer.process(order("1")).block()).isInstanceOf(Outcome.Duplicate.class);
        database.assertAppliedOnce(1);
    }

    @Test
    void aBatchEffectIsHeldToTheSameRulesAsAnEffect() {
        List<DatabaseClient> kept = new CopyOnWriteArrayList<>();
        Map<String, BatchEffect<Order>> wrong = Map.of(
                "returned null", (orders, db) -> nothing(),
                "thrown",
                        (orders, db) -> {
                            throw new IllegalStateException("thrown");
                        },
                "ended the transaction", (orders, db) -> db.sql("COMMIT").then());
        wrong.forEach((text, effect) -> {
            Outcome outcome = run(
                    setBased(10, effect)
                            .failurePolicy(Consumers.policy().maxAttempts(1).build())
                            .build(pool),
                    order(text));
            assertThat(outcome).as(text).isInstanceOf(Outcome.Failed.class);
        });
        run(
                setBased(10, (orders, db) -> {
                            kept.add(db);
                            return Order.applyAll(orders, db);
                        })
                        .build(pool),
                order("good"));
        assertThat(kept.get(0)
                        .sql("SELECT 1")
                        .then()
                        .onErrorResume(error -> {
                            assertThat(Causes.root(error)).hasMessageContaining("the effect of loyalty/good has ended");
                            return Mono.empty();
                        })
                        .thenReturn("refused")
                        .block())
                .isEqualTo("refused");
        database.assertAppliedOnce(1);
    }

    @SuppressWarnings("NullAway") // What a user's effect must not return.
    private static Mono<Void> nothing() {
        return null;
    }

    @Test
    void theFailureOfAMessageThatWasInABatchTellsItsOwnCause() {
        List<TestDelivery<Order>> deliveries = plug.before(TestDelivery.orders("m", 9));
        List<Outcome> outcomes = plug.run(
                batches(
                                64,
                                plug.then((order, db) -> order.id().equals("m4")
                                        ? db.sql("SELECT 1 / 0").then()
                                        : order.apply(db)))
                        .build(pool),
                deliveries);
        Failure failure = failureOf(outcomes.stream()
                .filter(Outcome.Failed.class::isInstance)
                .findFirst()
                .orElseThrow());
        assertThat(failure.kind()).isEqualTo(FailureKind.PERMANENT);
        assertThat(failure.sqlState()).isEqualTo("22012");
        assertThat(failure.attempts()).as("with the others, and alone").isEqualTo(2);
        assertThat(flux(deliveries)
                        .filter(delivery -> ((TestDelivery<?>) delivery).isDeadLettered())
                        .count()
                        .block())
                .isEqualTo(1);
        database.assertAppliedOnce(9);
    }

    private static TestDelivery<Order> order(String id) {
        return TestDelivery.order(id);
    }
}
