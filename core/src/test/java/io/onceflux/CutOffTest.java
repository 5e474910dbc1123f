package io.onceflux;

import static io.onceflux.Consumers.failureOf;
import static io.onceflux.Consumers.flux;
import static io.onceflux.Consumers.loyalty;
import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.policy;
import static io.onceflux.Consumers.run;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.r2dbc.pool.ConnectionPool;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ThreadLocalRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.reactivestreams.Subscription;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.Disposable;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/** Work that is cut short in the middle: by its subscriber, by a limit, by the end of the consumer. */
class CutOffTest {

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(10);

    /** A row at a time, with a little time between them. */
    private static Flux<Long> threeRows(Order order, DatabaseClient db) {
        return Flux.range(0, 3)
                .concatMap(n -> order.note(db).thenReturn((long) n).delayElement(Duration.ofMillis(10)));
    }

    private static void disposeWithin(Duration limit, Disposable running) {
        Mono.delay(Duration.ofMillis(ThreadLocalRandom.current().nextLong(limit.toMillis())))
                .doOnNext(now -> running.dispose())
                .then()
                .block();
    }

    private long claimsOf(String id) {
        return database.count("SELECT count(*) FROM processed_messages WHERE message_key = '" + id + "'");
    }

    @Test
    void anEffectOfThreeRowsRunsToItsEndThoughTheSubscriberTakesOneOutcome() {
        TestDelivery<Order> first = TestDelivery.order("1");
        Outcome outcome = Flux.<Delivery<Order>>just(first, TestDelivery.order("2"))
                .transform(orders(CutOffTest::threeRows).lanes(1).build(pool))
                .next()
                .block();

        assertThat(outcome).isInstanceOf(Outcome.Applied.class);
        assertThat(first.isAcknowledged()).isTrue();
        database.assertNothingLeaked();
        assertThat(database.effectsOf("1")).isEqualTo(3);
        assertThat(database.effectsOf("2")).isIn(0L, 3L);
    }

    @Test
    void anEffectOfThreeRowsThatIsCutByItsTimeLimitLeavesNoneAndWritesAllAfterRedelivery() {
        TestDelivery<Order> cut = TestDelivery.order("1");
        Failure failure = failureOf(run(
                orders((order, db) -> threeRows(order, db).concatWith(Mono.never()))
                        .timeLimit(Duration.ofMillis(200))
                        .lockTimeout(Duration.ofMillis(100))
                        .build(pool),
                cut));

        assertThat(failure.kind()).isEqualTo(FailureKind.EFFECT);
        assertThat(failure.reason()).contains("no end within the time limit of 200 ms");
        assertThat(failure.attempts()).isEqualTo(3);
        assertThat(cut.isDeadLettered()).isTrue();
        assertThat(database.effects()).isZero();
        assertThat(database.claims()).isZero();

        run(orders(CutOffTest::threeRows).build(pool), TestDelivery.order("1"));
        assertThat(database.effects()).isEqualTo(3);
    }

    @Test
    void aConsumerThatIsDisposedAtAnyMomentLeavesAllRowsOrNoneAndAnswersOnlyForAll() {
        for (int round = 0; round < 12; round++) {
            List<TestDelivery<Order>> deliveries = TestDelivery.orders("d" + round + "-", 8);
            Disposable running = flux(deliveries)
                    .transform(orders(CutOffTest::threeRows).build(pool))
                    .subscribe();
            disposeWithin(Duration.ofMillis(120), running);
            database.assertNothingLeaked();
            for (TestDelivery<Order> delivery : deliveries) {
                String id = String.valueOf(delivery.id());
                long rows = database.effectsOf(id);
                assertThat(rows).isEqualTo(claimsOf(id) * 3);
                assertThat(delivery.settlements().isEmpty() || rows == 3).isTrue();
            }
        }
        run(orders(CutOffTest::threeRows).build(pool), TestDelivery.orders("d0-", 8));
        assertThat(database.count("SELECT count(*) FROM point_ledger WHERE order_id LIKE 'd0-%'"))
                .isEqualTo(24);
    }

    @Test
    void aStartThatIsCutAtAnyMomentLeavesNoTransactionOpen() {
        for (int round = 0; round < 100; round++) {
            Disposable starting = Flux.<Delivery<Order>>never()
                    .transform(orders(CutOffTest::threeRows).build(pool))
                    .subscribe();
            disposeWithin(Duration.ofMillis(12), starting);
        }
        database.assertNothingLeaked();
    }

    @ParameterizedTest
    @ValueSource(strings = {"in SQL", "in Java", "before SQL"})
    void effectsThatAreSlowerThanTheTimeLimitNeverKeepAConnection(String where) {
        ConnectionPool small = database.pool(2);
        Effect<Order> slow = (order, db) -> switch (where) {
            case "in SQL" -> order.note(db).then(db.sql("SELECT pg_sleep(5)").then());
            case "in Java" -> order.note(db).then(Mono.delay(Duration.ofSeconds(5)));
            default -> Mono.delay(Duration.ofMillis(45)).then(order.note(db));
        };
        for (int round = 0; round < (where.equals("in SQL") ? 4 : 5); round++) {
            List<TestDelivery<Order>> deliveries = TestDelivery.orders(round + "-", where.equals("in SQL") ? 5 : 15);
            List<Outcome> outcomes = run(
                    orders(slow)
                            .lanes(1)
                            .timeLimit(Duration.ofMillis(50))
                            .lockTimeout(Duration.ofMillis(40))
                            .failurePolicy(
                                    policy().maxAttempts(1).alarmAfter(1_000).build())
                            .build(small),
                    deliveries);

            assertThat(outcomes).hasSameSizeAs(deliveries);
            assertThat(small.getMetrics().orElseThrow().acquiredSize()).isZero();
            assertThat(small.getMetrics().orElseThrow().pendingAcquireSize()).isZero();
        }
        assertThat(database.effects()).isEqualTo(database.claims());
        if (!where.equals("before SQL")) {
            assertThat(database.effects()).isZero();
        }
        Outcome canary = run(loyalty(pool), TestDelivery.order("canary"));
        assertThat(canary).isInstanceOf(Outcome.Applied.class);
    }

    @Test
    void aStatementThatIsJustBeingSentWhenTheTimeIsUpNeverRunsByItself() {
        int lanes = 8;
        ConnectionPool wide = database.pool(lanes + 1);
        Effect<Order> late = (order, db) -> Mono.delay(
                        Duration.ofMillis(ThreadLocalRandom.current().nextInt(40, 54)))
                .then(order.note(db));
        for (int round = 0; round < 8; round++) {
            List<Outcome> outcomes = run(
                    orders(late)
                            .lanes(lanes)
                            .timeLimit(Duration.ofMillis(50))
                            .lockTimeout(Duration.ofMillis(40))
                            .failurePolicy(
                                    policy().maxAttempts(1).alarmAfter(10_000).build())
                            .build(wide),
                    TestDelivery.orders("late-" + round + "-", 100));
            assertThat(outcomes).hasSize(100);
        }
        assertThat(database.effects())
                .as("effects without a claim would have run after ROLLBACK")
                .isEqualTo(database.claims());
        database.assertNothingLeaked();
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 8})
    void demandIsHonouredAndWhatIsCancelledIsAnsweredOnlyIfItCommitted(int maxBatch) {
        List<TestDelivery<Order>> deliveries = TestDelivery.orders("r", 2_000);
        List<Outcome> received = new CopyOnWriteArrayList<>();
        BaseSubscriber<Outcome> subscriber = new BaseSubscriber<>() {
            @Override
            protected void hookOnSubscribe(Subscription subscription) {
                subscription.request(1);
            }

            @Override
            protected void hookOnNext(Outcome outcome) {
                received.add(outcome);
            }
        };
        List<Delivery<Order>> taken = new CopyOnWriteArrayList<>();
        flux(deliveries)
                .doOnNext(taken::add)
                .transform(
                        orders(Order::apply).maxInFlight(20).maxBatch(maxBatch).build(pool))
                .subscribe(subscriber);
        try {
            await().untilAsserted(() -> {
                assertThat(received).hasSize(1);
                assertThat(database.openTransactions()).isZero();
                assertThat(database.effects()).isGreaterThan(1);
            });
            await().during(Duration.ofMillis(300)).until(() -> received.size() == 1);
            long answered = deliveries.stream()
                    .filter(delivery -> !delivery.settlements().isEmpty())
                    .count();
            assertThat(answered).isLessThanOrEqualTo(20 + received.size());
            assertThat(taken.size()).isLessThanOrEqualTo(20 + received.size());
        } finally {
            subscriber.cancel();
        }
        database.assertNothingLeaked();
        List<String> committed = database.texts("SELECT order_id FROM point_ledger");
        assertThat(committed).doesNotHaveDuplicates();
        assertThat(deliveries)
                .filteredOn(TestDelivery::isAcknowledged)
                .extracting(TestDelivery::id)
                .isSubsetOf(committed);
    }

    @Test
    void notMoreThanMaxInFlightDeliveriesAreTakenAndNotYetSettled() {
        for (int maxInFlight : new int[] {5, 12, 64}) {
            Sinks.Empty<Void> end = Sinks.empty();
            List<Delivery<Order>> taken = new CopyOnWriteArrayList<>();
            Disposable running = flux(TestDelivery.orders("f" + maxInFlight + "-", 200))
                    .doOnNext(taken::add)
                    .transform(orders((order, db) -> end.asMono())
                            .maxInFlight(maxInFlight)
                            .build(pool))
                    .subscribe();
            try {
                await().during(Duration.ofMillis(200))
                        .untilAsserted(() -> assertThat(taken).hasSizeBetween(maxInFlight - 3, maxInFlight));
            } finally {
                running.dispose();
            }
        }
    }

    @Test
    void aMessageWithoutAKeyWhoseChannelIsLostIsLetGoAndTheFluxGoesOn() {
        TestDelivery<Order> keyless = new TestDelivery<>(null, Order.of("none"));
        keyless.channelLost();
        RecordingListener told = new RecordingListener();
        List<Outcome> outcomes = Consumers.run(
                Consumers.orders(Order::apply)
                        .listener(told)
                        .build(fresh.database().pool(10)),
                List.of(keyless, TestDelivery.order("after")));

        assertThat(outcomes).singleElement().isInstanceOf(Outcome.Applied.class);
        assertThat(told.dropped).containsExactly(keyless);
    }
}
