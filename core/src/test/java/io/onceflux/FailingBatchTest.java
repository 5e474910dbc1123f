package io.onceflux;

import static io.onceflux.Consumers.batches;
import static io.onceflux.Consumers.failureOf;
import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.policy;
import static io.onceflux.Consumers.setBased;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.spi.Connection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.r2dbc.connection.SingleConnectionFactory;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/** A batch that fails harms only the message at fault, and an outage none. */
class FailingBatchTest {

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(12);
    private final RecordingListener told = new RecordingListener();
    private final Plug plug = new Plug();

    @AfterEach
    void dropGuarded() {
        database.run("DROP TABLE IF EXISTS guarded");
        database.run("DROP FUNCTION IF EXISTS once() CASCADE");
    }

    private List<Outcome> failed(List<Outcome> outcomes) {
        return outcomes.stream().filter(Outcome.Failed.class::isInstance).toList();
    }

    private void assertOnlyBadIsDeadLettered(List<TestDelivery<Order>> deliveries, List<Outcome> outcomes) {
        assertThat(failed(outcomes))
                .singleElement()
                .satisfies(outcome ->
                        assertThat(Objects.requireNonNull(outcome.key()).id()).isEqualTo("bad"));
        assertThat(deliveries)
                .allSatisfy(delivery -> assertThat(
                                Objects.equals(delivery.id(), "bad")
                                        ? delivery.isDeadLettered()
                                        : delivery.isAcknowledged())
                        .isTrue());
        database.assertAppliedOnce(deliveries.size() - 1);
    }

    private List<TestDelivery<Order>> withBadAt(int position, int size) {
        List<TestDelivery<Order>> deliveries = new ArrayList<>(TestDelivery.orders("m", size - 1));
        deliveries.add(position, TestDelivery.order("bad"));
        return plug.before(deliveries);
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 100, 255})
    void oneBadEffectAmong256CostsTheOthersTwoMoreTransactions(int position) {
        List<TestDelivery<Order>> deliveries = withBadAt(position, 256);
        List<Outcome> outcomes = plug.run(
                batches(
                                256,
                                plug.then((order, db) -> order.apply(db)
                                        .then(
                                                order.id().equals("bad")
                                                        ? db.sql("SELECT 1 / 0").then()
                                                        : Mono.empty())))
                        .listener(told)
                        .build(pool),
                deliveries);
        assertOnlyBadIsDeadLettered(deliveries, outcomes);
        assertThat(database.transactions()).isLessThanOrEqualTo(3);
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 100, 255})
    void oneBadMessageOfABatchEffectIsFoundByHalving(int position) {
        AtomicInteger calls = new AtomicInteger();
        List<TestDelivery<Order>> deliveries = withBadAt(position, 256);
        List<Outcome> outcomes = plug.run(
                setBased(256, plug.thenAll((orders, db) -> {
                            calls.incrementAndGet();
                            boolean bad =
                                    orders.stream().anyMatch(order -> order.id().equals("bad"));
                            return Order.applyAll(orders, db)
                                    .then(bad ? db.sql("SELECT 1 / 0").then() : Mono.empty());
                        }))
                        .listener(told)
                        .build(pool),
                deliveries);
        assertOnlyBadIsDeadLettered(deliveries, outcomes);
        assertThat(calls.get() - 1).as("transactions").isLessThanOrEqualTo(17);
        assertThat(database.transactions()).isLessThanOrEqualTo(9);
    }

    @Test
    void aConstraintThatFailsTheCommitIsFoundByHalvingToo() {
        database.run("CREATE TABLE guarded (id text REFERENCES balances DEFERRABLE INITIALLY DEFERRED)");
        List<TestDelivery<Order>> deliveries = withBadAt(40, 64);
        List<Outcome> outcomes = plug.run(
                batches(
                                64,
                                plug.then((order, db) -> order.apply(db)
                                        .then(db.sql("INSERT INTO guarded VALUES (:id)")
                                                .bind("id", order.id().equals("bad") ? "nobody" : order.customer())
                                                .then())))
                        .listener(told)
                        .build(pool),
                deliveries);
        assertOnlyBadIsDeadLettered(deliveries, outcomes);
        assertThat(failureOf(failed(outcomes).get(0)).sqlState()).isEqualTo("23503");
    }

    @Test
    void aMessageThatCannotBeClaimedHoldsUpNoOther() {
        List<TestDelivery<Order>> deliveries = new ArrayList<>(TestDelivery.orders("m", 49));
        deliveries.add(20, TestDelivery.order("bad\0id"));
        deliveries = plug.before(deliveries);
        List<Outcome> outcomes =
                plug.run(batches(64, plug.then(Order::apply)).listener(told).build(pool), deliveries);
        assertThat(failed(outcomes)).hasSize(1);
        assertThat(deliveries).filteredOn(TestDelivery::isDeadLettered).hasSize(1);
        assertThat(deliveries).filteredOn(TestDelivery::isAcknowledged).hasSize(50);
        assertThat(told.retries).isEmpty();
        assertThat(database.transactions()).isEqualTo(2);
        database.assertAppliedOnce(50);
    }

    @Test
    void copiesShareTheOutcomeOfTheFirstWhereverTheBatchIsSplit() {
        List<TestDelivery<Order>> deliveries = plug.before(List.of(
                TestDelivery.order("a"),
                TestDelivery.order("bad"),
                TestDelivery.order("b"),
                TestDelivery.order("a"),
                TestDelivery.order("bad"),
                TestDelivery.order("b")));
        AtomicInteger tries = new AtomicInteger();
        List<Outcome> outcomes = plug.run(
                batches(
                                64,
                                plug.then((order, db) -> order.id().equals("bad")
                                        ? db.sql("SELECT 1 / 0").then().doFinally(end -> tries.incrementAndGet())
                                        : order.apply(db)))
                        .build(pool),
                deliveries);
        assertThat(outcomes).filteredOn(Outcome.Applied.class::isInstance).hasSize(3);
        assertThat(outcomes).filteredOn(Outcome.Duplicate.class::isInstance).hasSize(2);
        assertThat(failed(outcomes)).hasSize(2);
        assertThat(deliveries).filteredOn(TestDelivery::isDeadLettered).hasSize(2);
        assertThat(tries).as("in the batch, and alone").hasValue(2);
        database.assertAppliedOnce(3);
    }

    /** As each would have been by itself. */
    @Test
    void aCorrectedMessageIsAppliedAlthoughItsIdFailedInTheSameBatch() {
        List<String> effects = new CopyOnWriteArrayList<>();
        TestDelivery<Order> bad = TestDelivery.of(new Order("a", "nobody", 1)).withBody("nobody");
        TestDelivery<Order> sameBad =
                TestDelivery.of(new Order("a", "nobody", 1)).withBody("nobody");
        TestDelivery<Order> good = TestDelivery.of(new Order("a", "c", 1)).withBody("c");
        TestDelivery<Order> copyOfGood = TestDelivery.of(new Order("a", "c", 1)).withBody("c");
        TestDelivery<Order> next = TestDelivery.order("b");
        plug.run(
                batches(64, plug.then((order, db) -> {
                            effects.add(order.id());
                            return order.customer().equals("nobody")
                                    ? Mono.error(new PermanentFailure("no customer"))
                                    : order.apply(db);
                        }))
                        .orderedBy(order -> 1)
                        .build(pool),
                plug.before(List.of(bad, sameBad, good, copyOfGood, next)));

        assertThat(List.of(bad, sameBad)).allMatch(TestDelivery::isDeadLettered);
        assertThat(List.of(good, copyOfGood, next)).allMatch(TestDelivery::isAcknowledged);
        assertThat(database.effectsOf("a")).isOne();
        assertThat(database.effectsOf("b")).isOne();
        assertThat(effects.lastIndexOf("b")).as("keeps its place").isGreaterThan(effects.lastIndexOf("a"));
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void deadlocksOfBatchesThatNobodyHasOrderedAreWarnedOf(boolean ordered) {
        AtomicInteger failures = new AtomicInteger();
        ConsumerBuilder<Order> described = batches(
                        64,
                        plug.then((order, db) -> !order.id().equals("plug") && failures.incrementAndGet() <= 3
                                ? Mono.error(DatabaseErrors.withState("40P01"))
                                : order.apply(db)))
                .listener(told);
        List<Outcome> outcomes = plug.run(
                (ordered ? described.orderedBy(order -> 1) : described).build(pool),
                plug.before(TestDelivery.orders("d", 16)));

        assertThat(outcomes).hasSize(17).allMatch(Outcome.Applied.class::isInstance);
        assertThat(told.warnings)
                .filteredOn(sentence -> sentence.contains("deadlock"))
                .hasSize(ordered ? 0 : 1)
                .allSatisfy(sentence -> assertThat(sentence).contains("orderedBy(...)"));
    }

    @Test
    void anUnusableMessageTakesNoCopyOfAUsableOneWithIt() {
        TestDelivery<Order> unusable = new TestDelivery<>("a", new Order("a", "nobody", 1));
        List<TestDelivery<Order>> deliveries =
                plug.before(List.of(unusable, TestDelivery.order("a"), TestDelivery.order("a")));
        List<Outcome> outcomes = plug.run(
                batches(64, plug.then(Order::apply))
                        .orderedBy(order -> {
                            if (order.customer().equals("nobody")) {
                                throw new IllegalStateException("no customer");
                            }
                            return 1;
                        })
                        .lanes(1)
                        .build(pool),
                deliveries);
        assertThat(failed(outcomes)).hasSize(1);
        assertThat(unusable.isDeadLettered()).isTrue();
        assertThat(deliveries).filteredOn(TestDelivery::isAcknowledged).hasSize(3);
        database.assertAppliedOnce(2);
    }

    @Test
    void aTimeoutOfTheEffectsOwnIsNotTakenForTheTimeLimit() {
        List<Throwable> asked = new ArrayList<>();
        Outcome outcome = Consumers.run(
                orders((order, db) -> Mono.never().timeout(Duration.ofMillis(20)))
                        .failurePolicy(policy().maxAttempts(1)
                                .classifying(error -> {
                                    asked.add(error);
                                    return null;
                                })
                                .build())
                        .build(pool),
                TestDelivery.order("1"));
        assertThat(asked).singleElement().isInstanceOf(TimeoutException.class);
        assertThat(failureOf(outcome).reason()).contains("TimeoutException").doesNotContain("time limit");
    }

    @Test
    void theOrderOfAKeyHoldsAcrossFailuresAndParts() {
        Map<String, Integer> failures = new HashMap<>(Map.of("m20", 2, "m41", 1, "m42", 2));
        List<TestDelivery<Order>> deliveries = new ArrayList<>();
        for (int n = 0; n < 200; n++) {
            deliveries.add(new TestDelivery<>("m" + n, new Order("m" + n, "customer-" + n % 3, n)));
        }
        List<Outcome> outcomes = plug.run(
                batches(
                                50,
                                plug.then((order, db) -> failures.merge(order.id(), -1, Integer::sum) >= 0
                                        ? order.note(db).then(Mono.error(new IllegalStateException("later")))
                                        : order.note(db)))
                        .orderedBy(Order::customer)
                        .build(pool),
                plug.before(deliveries));
        assertThat(outcomes).hasSize(201).allMatch(Outcome.Applied.class::isInstance);
        Map<Object, Long> last = new HashMap<>();
        for (Map<String, Object> row :
                database.rows("SELECT customer_id, points FROM point_ledger WHERE order_id <> 'plug' ORDER BY entry")) {
            long number = (Long) Objects.requireNonNull(row.get("points"));
            assertThat(number).isGreaterThan(last.getOrDefault(row.get("customer_id"), -1L));
            last.put(row.get("customer_id"), number);
        }
        database.assertAppliedOnce(201);
    }

    @Test
    void aHotKeyThatAnotherTransactionHoldsDoesNotHoldTheOthersOfItsBatch() {
        Sinks.Empty<Void> end = Sinks.empty();
        CompletableFuture<Outcome> holder = orders((order, db) -> order.note(db).then(end.asMono()))
                .failurePolicy(policy().maxAttempts(1).build())
                .processBudget(Duration.ofSeconds(60))
                .build(pool)
                .process(TestDelivery.order("A"))
                .toFuture();
        await().untilAsserted(() -> assertThat(database.openTransactions()).isEqualTo(1));

        List<TestDelivery<Order>> deliveries = new ArrayList<>();
        for (int i = 0; i < 50; i++) {
            if (i % 5 == 0) {
                deliveries.add(TestDelivery.order("A"));
            }
            deliveries.add(TestDelivery.order("other-" + i));
        }
        List<TestDelivery<Order>> all = plug.before(deliveries);
        CompletableFuture<List<Outcome>> outcomes = plug.start(
                batches(64, plug.then(Order::apply))
                        .lockTimeout(Duration.ofMillis(100))
                        .listener(told)
                        .build(database.pool(5)),
                all);
        plug.pull();
        await().atMost(Duration.ofSeconds(20))
                .untilAsserted(() -> assertThat(database.effects())
                        .as("the plug and the others")
                        .isEqualTo(51));
        assertThat(outcomes).isNotDone();
        end.emitError(new IllegalStateException("rolled back"), Sinks.EmitFailureHandler.FAIL_FAST);

        assertThat(holder.join()).isInstanceOf(Outcome.Failed.class);
        assertThat(outcomes.join())
                .filteredOn(Outcome.Applied.class::isInstance)
                .hasSize(52);
        assertThat(told.sqlStatesOfRetries()).containsOnly("55P03");
        assertThat(all).allMatch(TestDelivery::isAcknowledged);
        database.assertAppliedOnce(52);
    }

    /** Of a part some wait for a message before them, and the others do not: they are no reason to wait for each other. */
    @Test
    void messagesOfAHotKeyHoldUpNoneOfTheOtherKeysBehindThem() {
        List<TestDelivery<Order>> deliveries = new ArrayList<>();
        for (int customer = 0; customer < 20; customer++) {
            for (int n = 0; n < 3; n++) {
                deliveries.add(TestDelivery.of(new Order("m" + customer + "-" + n, "customer-" + customer, 1)));
            }
        }
        database.run("INSERT INTO balances SELECT 'customer-' || n, 0 FROM generate_series(0, 19) n");
        Connection holder =
                Objects.requireNonNull(Mono.from(database.direct().create()).block(Duration.ofSeconds(10)));
        try {
            Mono.from(holder.beginTransaction()).block(Duration.ofSeconds(10));
            DatabaseClient.create(new SingleConnectionFactory(
                            holder, database.direct().getMetadata(), true))
                    .sql("UPDATE balances SET points = points WHERE customer_id = 'customer-7'")
                    .then()
                    .block(Duration.ofSeconds(10));
            List<TestDelivery<Order>> all = plug.before(deliveries);
            CompletableFuture<List<Outcome>> outcomes = plug.start(
                    batches(64, plug.then(Order::apply))
                            .orderedBy(Order::customer)
                            .lockTimeout(Duration.ofMillis(100))
                            .listener(told)
                            .build(database.pool(5)),
                    all);
            plug.pull();
            await().atMost(Duration.ofSeconds(30))
                    .untilAsserted(() -> assertThat(database.effects())
                            .as("the plug and those of the other customers")
                            .isEqualTo(58));
            assertThat(outcomes).isNotDone();
            Mono.from(holder.rollbackTransaction()).block(Duration.ofSeconds(10));

            assertThat(outcomes.join()).hasSize(61).allMatch(Outcome.Applied.class::isInstance);
        } finally {
            Mono.from(holder.close()).block(Duration.ofSeconds(10));
        }
        assertThat(database.texts("SELECT order_id FROM point_ledger WHERE customer_id = 'customer-7' ORDER BY entry"))
                .containsExactly("m7-0", "m7-1", "m7-2");
        database.assertAppliedOnce(61);
    }

    @Test
    void aConflictOfTheFirstAttemptIsTriedAgainAsAWhole() {
        database.run("CREATE TABLE guarded (id text)");
        database.run("""
                CREATE SEQUENCE IF NOT EXISTS tries;
                SELECT setval('tries', 1, false);
                CREATE FUNCTION once() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN
                    IF nextval('tries') = 1 THEN RAISE EXCEPTION 'once' USING ERRCODE = '40001'; END IF;
                    RETURN NEW;
                END $$;
                CREATE TRIGGER once BEFORE INSERT ON guarded FOR EACH ROW EXECUTE FUNCTION once()""");
        List<TestDelivery<Order>> deliveries = plug.before(TestDelivery.orders("m", 30));
        List<Outcome> outcomes = plug.run(
                batches(
                                64,
                                plug.then((order, db) -> order.id().equals("plug")
                                        ? order.apply(db)
                                        : order.apply(db)
                                                .then(db.sql("INSERT INTO guarded VALUES (:id)")
                                                        .bind("id", order.id())
                                                        .then())))
                        .listener(told)
                        .build(pool),
                deliveries);
        assertThat(outcomes).hasSize(31).allMatch(Outcome.Applied.class::isInstance);
        assertThat(told.sqlStatesOfRetries()).hasSize(30).containsOnly("40001");
        assertThat(database.transactions()).isEqualTo(2);
        database.assertAppliedOnce(31);
    }

    @Test
    void aUniqueViolationOfTheEffectsOwnTableIsThatMessagesFault() {
        database.run("CREATE TABLE guarded (id text PRIMARY KEY)");
        database.run("INSERT INTO guarded VALUES ('bad')");
        List<TestDelivery<Order>> deliveries = withBadAt(7, 20);
        List<Outcome> outcomes = plug.run(
                batches(
                                64,
                                plug.then((order, db) -> order.apply(db)
                                        .then(db.sql("INSERT INTO guarded VALUES (:id)")
                                                .bind("id", order.id())
                                                .then())))
                        .listener(told)
                        .build(pool),
                deliveries);
        assertOnlyBadIsDeadLettered(deliveries, outcomes);
        assertThat(told.sqlStatesOfRetries()).doesNotContain("25P02");
    }

    @Test
    void sessionsThatAreTerminatedUnderWayCostNobodyAnAttempt() {
        AtomicInteger killed = new AtomicInteger();
        List<TestDelivery<Order>> deliveries = plug.before(TestDelivery.orders("m", 100));
        List<Outcome> outcomes = plug.run(
                batches(
                                128,
                                plug.then((order, db) -> order.apply(db)
                                        .then(
                                                order.id().equals("m50") && killed.getAndIncrement() == 0
                                                        ? terminate(db)
                                                        : Mono.empty())))
                        .failurePolicy(policy().maxAttempts(1).build())
                        .listener(told)
                        .build(pool),
                deliveries);
        assertThat(outcomes).hasSize(101).allMatch(Outcome.Applied.class::isInstance);
        assertThat(database.transactions()).as("tried again as a whole").isEqualTo(2);
        database.assertAppliedOnce(101);
    }

    private static Mono<Void> terminate(DatabaseClient db) {
        return db.sql("SELECT pg_terminate_backend(pg_backend_pid())").then();
    }

    @Test
    void aMessageThatKillsEverySessionIsFoundAndTheOthersAreApplied() {
        List<TestDelivery<Order>> deliveries = withBadAt(10, 40);
        IdempotentConsumer<Order> consumer = batches(
                        64, plug.then((order, db) -> order.id().equals("bad") ? terminate(db) : order.apply(db)))
                .failurePolicy(policy().quarantineAfter(3).build())
                .listener(told)
                .build(pool);
        CompletableFuture<List<Outcome>> outcomes = plug.start(consumer, deliveries);
        plug.pull();
        await().untilAsserted(() -> assertThat(database.effects()).isEqualTo(40));
        AtomicInteger others = new AtomicInteger();
        await().until(() -> {
            // What shows that it is not the server: others are applied, whenever it has failed again.
            assertThat(consumer.process(TestDelivery.order("other" + others.incrementAndGet()))
                            .block(Duration.ofSeconds(10)))
                    .isInstanceOf(Outcome.Applied.class);
            return outcomes.isDone();
        });

        assertThat(failed(outcomes.join()))
                .hasSize(1)
                .allSatisfy(outcome -> assertThat(failureOf(outcome).kind()).isEqualTo(FailureKind.INFRASTRUCTURE));
        assertThat(deliveries).filteredOn(TestDelivery::isDeadLettered).hasSize(1);
        database.assertAppliedOnce(40 + others.get());
    }

    @Test
    void aMessageWhoseTableIsMissingDoesNotHoldTheOthersOfItsBatch() {
        List<TestDelivery<Order>> deliveries = withBadAt(10, 40);
        CompletableFuture<List<Outcome>> outcomes = plug.start(
                batches(
                                64,
                                plug.then((order, db) -> order.id().equals("bad")
                                        ? db.sql("INSERT INTO not_there VALUES (1)")
                                                .then()
                                        : order.apply(db)))
                        .listener(told)
                        .build(pool),
                deliveries);
        plug.pull();
        await().untilAsserted(() -> assertThat(database.effects()).isEqualTo(40));
        assertThat(outcomes).isNotDone();
        assertThat(told.held).contains(FailureKind.BROKEN_SETUP);
        database.run("CREATE TABLE not_there (id int)");
        assertThat(outcomes.join())
                .filteredOn(Outcome.Applied.class::isInstance)
                .hasSize(41);
        database.run("DROP TABLE not_there");
        assertThat(database.claims()).isEqualTo(41);
    }

    @Test
    void aSlowMessageRunsIntoTheTimeLimitAndTheOthersAreApplied() {
        List<TestDelivery<Order>> deliveries = withBadAt(3, 8);
        List<Outcome> outcomes = plug.run(
                batches(
                                64,
                                plug.then((order, db) -> order.id().equals("bad")
                                        ? order.apply(db).then(Mono.never())
                                        : order.apply(db)))
                        .timeLimit(Duration.ofMillis(800))
                        .lockTimeout(Duration.ofMillis(300))
                        .failurePolicy(policy().maxAttempts(1).build())
                        .listener(told)
                        .build(pool),
                deliveries);
        assertOnlyBadIsDeadLettered(deliveries, outcomes);
    }

    @Test
    void whatHasBegunCommitsAtAStopAndTheRestIsGivenBack() {
        Sinks.Empty<Void> finish = Sinks.empty();
        AtomicInteger started = new AtomicInteger();
        IdempotentConsumer<Order> consumer = batches(
                        10,
                        (order, db) -> order.note(db)
                                .then(Mono.fromRunnable(started::incrementAndGet))
                                .then(finish.asMono()))
                .listener(told)
                .build(pool);
        List<TestDelivery<Order>> deliveries = TestDelivery.orders("s", 40);
        CompletableFuture<List<Outcome>> outcomes = Flux.<Delivery<Order>>fromIterable(deliveries)
                .concatWith(Flux.never())
                .transform(consumer)
                .collectList()
                .toFuture();
        await().until(() -> started.get() == 1);
        CompletableFuture<Void> stopped = consumer.stop().toFuture();
        finish.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);
        await().until(stopped::isDone);

        assertThat(outcomes).isCompletedWithValueMatching(list -> list.size() == 1);
        assertThat(deliveries).filteredOn(TestDelivery::isAcknowledged).hasSize(1);
        assertThat(deliveries).filteredOn(TestDelivery::isRequeued).hasSize(39);
        assertThat(told.dropped).hasSize(39);
        database.assertAppliedOnce(1);
    }

    @Test
    void aBatchThatIsCutOffIsRolledBackAndEachOfItsDeliveriesIsDroppedOnce() {
        AtomicInteger started = new AtomicInteger();
        List<TestDelivery<Order>> deliveries = new ArrayList<>(TestDelivery.orders("s", 40));
        deliveries.addAll(TestDelivery.orders("s", 3));
        List<TestDelivery<Order>> all = plug.before(deliveries);
        IdempotentConsumer<Order> consumer = batches(
                        30,
                        plug.then((order, db) -> order.note(db)
                                .then(Mono.fromRunnable(started::incrementAndGet))
                                .then(order.id().equals("plug") ? Mono.empty() : Mono.never())))
                .listener(told)
                .build(pool);
        CompletableFuture<List<Outcome>> outcomes = plug.start(consumer, all);
        plug.pull();
        await().until(() -> started.get() == 2);
        consumer.stop(Duration.ofMillis(200)).block(Duration.ofSeconds(20));

        assertThat(outcomes.join()).hasSize(1);
        assertThat(told.dropped).hasSize(43).doesNotHaveDuplicates();
        assertThat(deliveries).allMatch(delivery -> delivery.settlements().isEmpty());
        database.assertAppliedOnce(1);
    }

    @Test
    void deliveriesWhoseChannelIsLostAreNotStartedAndTheOthersOfTheBatchAre() {
        List<TestDelivery<Order>> deliveries = TestDelivery.orders("m", 20);
        List<TestDelivery<Order>> all = plug.before(deliveries);
        CompletableFuture<List<Outcome>> outcomes =
                plug.start(batches(64, plug.then(Order::apply)).listener(told).build(pool), all);
        deliveries.subList(5, 10).forEach(TestDelivery::channelLost);
        plug.pull();
        assertThat(outcomes.join()).hasSize(16).allMatch(Outcome.Applied.class::isInstance);
        assertThat(told.dropped).hasSameElementsAs(deliveries.subList(5, 10));
        database.assertAppliedOnce(16);
    }

    /** The connection dies while the COMMIT of a batch is under way. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aCommitWithoutAnAnswerIsFoundOutAboutForTheWholeBatch(boolean tookPlace) {
        try (CommitCuttingProxy proxy = new CommitCuttingProxy(database.host(), database.port())) {
            ConnectionPool cut =
                    database.pool(3, database.configuration().host("127.0.0.1").port(proxy.port()));
            List<TestDelivery<Order>> deliveries = plug.before(TestDelivery.orders("m", 50));
            AtomicInteger cuts = new AtomicInteger(1);
            CompletableFuture<List<Outcome>> outcomes = plug.start(
                    batches(64, plug.then((order, db) -> {
                                if (order.id().equals("m0")) { // Of the batch, not of the plug before it.
                                    (tookPlace ? proxy.toCutAfter : proxy.toCutBefore)
                                            .compareAndSet(0, cuts.getAndSet(0));
                                }
                                return order.apply(db);
                            }))
                            .listener(told)
                            .build(cut),
                    deliveries);
            plug.pull();
            List<Outcome> all = outcomes.join();
            assertThat(told.unknownCommits).as("COMMITs, not messages").hasSize(1);
            assertThat(all)
                    .filteredOn(tookPlace ? Outcome.Duplicate.class::isInstance : Outcome.Applied.class::isInstance)
                    .hasSizeGreaterThanOrEqualTo(50);
            assertThat(deliveries).allMatch(TestDelivery::isAcknowledged);
            database.assertAppliedOnce(51);
        }
    }
}
