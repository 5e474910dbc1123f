package io.onceflux;

import static io.onceflux.Consumers.failureOf;
import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.policy;
import static io.onceflux.Consumers.run;
import static io.onceflux.Consumers.start;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.onceflux.postgres.ClaimTable;
import io.onceflux.postgres.UniqueKey;
import io.r2dbc.pool.ConnectionPool;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.r2dbc.core.DatabaseClient;
import org.springframework.transaction.annotation.Isolation;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Effects that decide by themselves whether they happen: by a natural key, or by a condition on what is there. */
class ConditionalEffectTest {

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(12);

    @BeforeEach
    void createTables() {
        database.run("""
                CREATE TABLE entries (order_id text PRIMARY KEY, customer_id text NOT NULL, points bigint NOT NULL);
                CREATE TABLE shipments (order_id text PRIMARY KEY, state text NOT NULL)""");
    }

    @AfterEach
    void dropTables() {
        database.run("DROP TABLE entries, shipments");
    }

    private static Mono<Long> enter(Order order, DatabaseClient db) {
        return db.sql("INSERT INTO entries VALUES (:o, :c, :p) ON CONFLICT (order_id) DO NOTHING")
                .bind("o", order.id())
                .bind("c", order.customer())
                .bind("p", order.points())
                .fetch()
                .rowsUpdated();
    }

    private static ConsumerBuilder<Order> ledger(int maxBatch) {
        return orders(Order::apply)
                .naturalKey(UniqueKey.of("entries", "order_id"))
                .conditionalEffect(ConditionalEffectTest::enter, NoRows.DUPLICATE)
                .maxBatch(maxBatch);
    }

    private static Mono<Long> ship(Order order, DatabaseClient db) {
        return db.sql("UPDATE shipments SET state = 'shipped' WHERE order_id = :o AND state = 'paid'")
                .bind("o", order.id())
                .fetch()
                .rowsUpdated();
    }

    /** What is not committed is seen, too. */
    private static Mono<NoRows> lookAtShipment(Order order, DatabaseClient db) {
        return db.sql("SELECT state FROM shipments WHERE order_id = :o")
                .bind("o", order.id())
                .map(row -> Objects.requireNonNull(row.get(0, String.class)))
                .one()
                .flatMap(state -> switch (state) {
                    case "shipped" -> Mono.just(NoRows.DUPLICATE);
                    case "returned" -> Mono.just(NoRows.STALE);
                    default -> Mono.error(new PermanentFailure("the order is " + state));
                });
    }

    @ParameterizedTest
    @CsvSource({"1, DEFAULT", "64, DEFAULT", "1, SERIALIZABLE", "64, SERIALIZABLE", "64, REPEATABLE_READ"})
    void theSameMessagesOnTwoInstancesAreEnteredOnceAndNothingIsClaimed(int maxBatch, Isolation isolation) {
        List<TestDelivery<Order>> here = TestDelivery.orders("m", 200);
        List<TestDelivery<Order>> there = new ArrayList<>(TestDelivery.orders("m", 200));
        Collections.reverse(there);
        CompletableFuture<List<Outcome>> outcomesHere =
                start(ledger(maxBatch).isolation(isolation).build(pool), here);
        List<Outcome> outcomes =
                new ArrayList<>(run(ledger(maxBatch).isolation(isolation).build(database.pool(12)), there));
        outcomes.addAll(outcomesHere.join());

        assertThat(outcomes).filteredOn(Outcome.Applied.class::isInstance).hasSize(200);
        assertThat(outcomes).filteredOn(Outcome.Duplicate.class::isInstance).hasSize(200);
        assertThat(database.count("SELECT count(*) FROM entries")).isEqualTo(200);
        assertThat(database.claims()).isZero();
        assertThat(here).allMatch(TestDelivery::isAcknowledged);
        assertThat(there).allMatch(TestDelivery::isAcknowledged);
    }

    @Test
    void whatItMeansThatNoRowWasAffectedIsAskedInTheTransaction() {
        database.run("INSERT INTO shipments VALUES"
                + " ('paid', 'paid'), ('shipped', 'shipped'), ('returned', 'returned'), ('cancelled', 'cancelled')");
        List<TestDelivery<Order>> deliveries = List.of(
                TestDelivery.order("paid"),
                TestDelivery.order("shipped"),
                TestDelivery.order("returned"),
                TestDelivery.order("cancelled"));
        List<Outcome> outcomes = run(
                orders(Order::apply)
                        .lanes(1)
                        .conditionalEffect(ConditionalEffectTest::ship, ConditionalEffectTest::lookAtShipment)
                        .build(pool),
                deliveries);

        assertThat(outcomes)
                .hasExactlyElementsOfTypes(
                        Outcome.Applied.class, Outcome.Duplicate.class, Outcome.Stale.class, Outcome.Failed.class);
        assertThat(failureOf(outcomes.get(3)).reason()).isEqualTo("the order is cancelled");
        assertThat(deliveries.subList(0, 3)).allMatch(TestDelivery::isAcknowledged);
        assertThat(deliveries.get(3).isDeadLettered()).isTrue();
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 64})
    void whereNoRowMeansFailedTheMessageIsADeadLetterAndWhatItWroteIsRolledBack(int maxBatch) {
        List<TestDelivery<Order>> deliveries = TestDelivery.orders("m", 10);
        deliveries.stream()
                .filter(delivery -> !Objects.equals(delivery.id(), "m4"))
                .forEach(delivery -> database.run("INSERT INTO shipments VALUES ('" + delivery.id() + "', 'paid')"));
        List<Outcome> outcomes = run(
                orders(Order::apply)
                        .maxBatch(maxBatch)
                        .conditionalEffect((order, db) -> order.note(db).then(ship(order, db)), NoRows.FAILED)
                        .build(pool),
                deliveries);

        assertThat(outcomes)
                .filteredOn(Outcome.Failed.class::isInstance)
                .singleElement()
                .satisfies(failed -> {
                    assertThat(failureOf(failed).kind()).isEqualTo(FailureKind.PERMANENT);
                    assertThat(failureOf(failed).reason()).isEqualTo("the effect affected no row");
                    assertThat(failureOf(failed).attempts()).isLessThanOrEqualTo(8);
                });
        assertThat(deliveries.get(4).isDeadLettered()).isTrue();
        assertThat(database.effectsOf("m4")).isZero();
        assertThat(database.effects()).isEqualTo(9);
        assertThat(database.count("SELECT count(*) FROM shipments WHERE state = 'shipped'"))
                .isEqualTo(9);
    }

    /** A missing balance is a failure, not a duplicate: the entry is counted, and the update looked at. */
    @Test
    void aSingleStatementEntersAndPays() {
        database.run("INSERT INTO balances VALUES ('known', 0)");
        ConsumerBuilder<Order> consumer = orders(Order::apply)
                .naturalKey(UniqueKey.of("entries", "order_id"))
                .conditionalEffect(
                        (order, db) -> db.sql("""
                                WITH entry AS (
                                    INSERT INTO entries VALUES (:o, :c, :p) ON CONFLICT (order_id) DO NOTHING RETURNING points
                                ), paid AS (
                                    UPDATE balances SET points = balances.points + entry.points FROM entry
                                    WHERE customer_id = :c RETURNING 1
                                )
                                SELECT (SELECT count(*) FROM entry), (SELECT count(*) FROM paid)""")
                                .bind("o", order.id())
                                .bind("c", order.customer())
                                .bind("p", order.points())
                                .map(row -> {
                                    Long entered = Objects.requireNonNull(row.get(0, Long.class));
                                    if (!entered.equals(row.get(1, Long.class))) {
                                        throw new PermanentFailure("no balance of " + order.customer());
                                    }
                                    return entered;
                                })
                                .one(),
                        NoRows.DUPLICATE);
        TestDelivery<Order> unknown = TestDelivery.order("of nobody");
        List<Outcome> outcomes = run(
                consumer.lanes(1).build(pool),
                List.of(
                        TestDelivery.of(new Order("1", "known", 10)),
                        TestDelivery.of(new Order("1", "known", 10)),
                        unknown));

        assertThat(outcomes)
                .hasExactlyElementsOfTypes(Outcome.Applied.class, Outcome.Duplicate.class, Outcome.Failed.class);
        assertThat(unknown.isDeadLettered()).isTrue();
        assertThat(database.count("SELECT points FROM balances WHERE customer_id = 'known'"))
                .isEqualTo(10);
        assertThat(database.count("SELECT count(*) FROM entries")).isEqualTo(1);
    }

    @Test
    void aConditionalEffectThatDoesNotCountIsAnError() {
        TestDelivery<Order> delivery = TestDelivery.order("1");
        Outcome outcome = run(
                orders(Order::apply)
                        .failurePolicy(policy().maxAttempts(2).build())
                        .conditionalEffect((order, db) -> Mono.empty(), NoRows.DUPLICATE)
                        .build(pool),
                delivery);

        assertThat(failureOf(outcome).reason()).contains("the conditional effect emitted no number");
        assertThat(delivery.isDeadLettered()).isTrue();
    }

    @Test
    void severalNumbersAreAnError() {
        Outcome outcome = run(
                orders(Order::apply)
                        .failurePolicy(policy().maxAttempts(1).build())
                        .conditionalEffect((order, db) -> Flux.just(0L, 1L), NoRows.DUPLICATE)
                        .build(pool),
                TestDelivery.order("1"));

        assertThat(failureOf(outcome).reason()).contains("emitted several numbers");
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 64})
    void whatDependsOnARowComesBehindIt(int maxBatch) {
        ConditionalEffect<Order> enter = ConditionalEffectTest::enter;
        IdempotentConsumer<Order> consumer = orders(Order::apply)
                .naturalKey(UniqueKey.of("entries", "order_id"))
                .conditionalEffect(enter.then(Order::apply), NoRows.DUPLICATE)
                .maxBatch(maxBatch)
                .build(pool);
        run(consumer, TestDelivery.orders("m", 10));

        assertThat(run(consumer, TestDelivery.orders("m", 20)))
                .filteredOn(Outcome.Duplicate.class::isInstance)
                .hasSize(10);
        assertThat(database.effects()).isEqualTo(20);
        assertThat(database.count("SELECT sum(points)::bigint FROM balances")).isEqualTo(200);
    }

    /** An effect that does something else before the statement that decides: it is undone where that affects no row. */
    @ParameterizedTest
    @ValueSource(ints = {1, 64})
    void whatWasWrittenBeforeItWasFoundOutThatNothingHappensIsRolledBack(int maxBatch) {
        Plug plug = new Plug();
        run(ledger(1).build(pool), TestDelivery.orders("m", 5));
        List<TestDelivery<Order>> deliveries = plug.before(TestDelivery.orders("m", 10));
        List<Outcome> outcomes = plug.run(
                ledger(maxBatch)
                        .lanes(1)
                        .conditionalEffect(
                                (order, db) -> Mono.from(plug.then(Order::apply).apply(order, db))
                                        .then(enter(order, db)),
                                NoRows.DUPLICATE)
                        .build(pool),
                deliveries);

        assertThat(outcomes).filteredOn(Outcome.Duplicate.class::isInstance).hasSize(5);
        assertThat(outcomes).filteredOn(Outcome.Applied.class::isInstance).hasSize(6);
        assertThat(deliveries).allMatch(TestDelivery::isAcknowledged);
        assertThat(database.effects()).isEqualTo(6);
        assertThat(database.count("SELECT sum(points)::bigint FROM balances")).isEqualTo(60);
    }

    /** One statement that pays, whether it enters or not; its count says that nothing was entered. */
    private static Mono<Long> payAndEnter(Order order, DatabaseClient db) {
        return db.sql("""
                        WITH paid AS (UPDATE balances SET points = points + :p WHERE customer_id = :c)
                        INSERT INTO entries VALUES (:o, :c, :p) ON CONFLICT (order_id) DO NOTHING""")
                .bind("o", order.id())
                .bind("c", order.customer())
                .bind("p", order.points())
                .fetch()
                .rowsUpdated();
    }

    @ParameterizedTest
    @CsvSource({"1, false", "64, false", "1, true", "64, true"})
    void whatTheStatementThatDecidesWritesBesidesIsRolledBackToo(int maxBatch, boolean claims) {
        Plug plug = new Plug();
        List<TestDelivery<Order>> all = plug.before(TestDelivery.orders("m", 8));
        all.forEach(delivery -> database.run("INSERT INTO balances VALUES ('"
                + Objects.requireNonNull(delivery.payload()).customer() + "', 0) ON CONFLICT DO NOTHING"));
        run(
                ledger(1)
                        .conditionalEffect(ConditionalEffectTest::payAndEnter, NoRows.DUPLICATE)
                        .build(pool),
                plug.before(TestDelivery.orders("m", 5)));

        ConsumerBuilder<Order> again = ledger(maxBatch)
                .lanes(1)
                .conditionalEffect(
                        (order, db) -> Mono.from(
                                        plug.then((o, d) -> Mono.empty()).apply(order, db))
                                .then(payAndEnter(order, db)),
                        NoRows.DUPLICATE);
        List<Outcome> outcomes =
                plug.run((claims ? again.claimTable(ClaimTable.processedMessages()) : again).build(pool), all);

        assertThat(outcomes).filteredOn(Outcome.Duplicate.class::isInstance).hasSize(6);
        assertThat(outcomes).filteredOn(Outcome.Applied.class::isInstance).hasSize(3);
        assertThat(database.count("SELECT count(*) FROM entries")).isEqualTo(9);
        assertThat(database.count("SELECT sum(points)::bigint FROM balances"))
                .isEqualTo(database.count("SELECT sum(points)::bigint FROM entries"));
    }

    /** Two of three were there: what was taken of them is given back. */
    @ParameterizedTest
    @ValueSource(ints = {1, 64})
    void whatAStatementHasWrittenIsUndoneWhateverTheEffectMakesOfItsCount(int maxBatch) {
        database.run("INSERT INTO shipments VALUES ('1', 'paid'), ('2', 'paid'), ('3', 'new')");
        List<Outcome> outcomes = run(
                orders(Order::apply)
                        .maxBatch(maxBatch)
                        .conditionalEffect(
                                (order, db) -> db.sql("UPDATE shipments SET state = 'shipped' WHERE state = 'paid'")
                                        .fetch()
                                        .rowsUpdated()
                                        .map(rows -> rows == 3 ? rows : 0L),
                                NoRows.STALE)
                        .build(pool),
                TestDelivery.orders("m", 3));
        assertThat(outcomes).hasSize(3).allMatch(Outcome.Stale.class::isInstance);
        assertThat(database.texts("SELECT state FROM shipments ORDER BY order_id"))
                .containsExactly("paid", "paid", "new");
    }

    /** It has affected no row, because it failed: that is no duplicate. */
    @ParameterizedTest
    @CsvSource({"false, 0", "true, 0", "false, 50", "true, 50"})
    void anErrorThatNobodyHeedsIsNoDuplicate(boolean writesBefore, int delayMillis) {
        database.run("ALTER TABLE entries ADD CONSTRAINT few CHECK (points < 5)");
        TestDelivery<Order> delivery = TestDelivery.of(new Order("1", "customer", 10));
        Outcome outcome = run(
                orders(Order::apply)
                        .failurePolicy(policy().maxAttempts(2).build())
                        .naturalKey(UniqueKey.of("entries", "order_id"))
                        .conditionalEffect(
                                (order, db) -> (writesBefore ? order.note(db) : Mono.<Void>empty())
                                        .then(enter(order, db)
                                                .onErrorResume(error -> Mono.delay(Duration.ofMillis(delayMillis))
                                                        .thenReturn(0L))),
                                NoRows.DUPLICATE)
                        .build(pool),
                delivery);

        assertThat(outcome).isInstanceOf(Outcome.Failed.class);
        assertThat(delivery.isDeadLettered()).isTrue();
        assertThat(database.effects()).isZero();
    }

    /** Duplicates of it show nothing of what the effect needs besides. */
    @Test
    void aBrokenDeploymentIsHeldHoweverManyDuplicatesCome() {
        run(ledger(1).build(pool), TestDelivery.orders("old", 20));
        database.run("ALTER TABLE point_ledger RENAME TO elsewhere");
        RecordingListener told = new RecordingListener();
        ConditionalEffect<Order> enter = ConditionalEffectTest::enter;
        IdempotentConsumer<Order> consumer = ledger(1)
                .listener(told)
                .conditionalEffect(enter.then(Order::note), NoRows.DUPLICATE)
                .build(pool);
        TestDelivery<Order> fresh = TestDelivery.order("fresh");
        CompletableFuture<List<Outcome>> outcome = start(consumer, List.of(fresh));
        try {
            while (told.retries.size() < 15) { // It is given up after ten, if others get through.
                assertThat(run(consumer, TestDelivery.orders("old", 20))).allMatch(Outcome.Duplicate.class::isInstance);
            }
            assertThat(fresh.settlements()).isEmpty();
        } finally {
            database.run("ALTER TABLE elsewhere RENAME TO point_ledger");
        }
        assertThat(outcome.join()).singleElement().isInstanceOf(Outcome.Applied.class);
        assertThat(fresh.isAcknowledged()).isTrue();
    }

    @Test
    void aTriggerThatMayTakeRowsAwayIsWarnedOf() {
        database.run("""
                CREATE FUNCTION away() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
                CREATE TRIGGER redirect BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION away()""");
        try {
            RecordingListener told = new RecordingListener();
            run(ledger(1).listener(told).build(pool), TestDelivery.order("1"));
            assertThat(told.warnings)
                    .anyMatch(warning -> warning.contains("table entries has triggers before each INSERT (redirect)"));
        } finally {
            database.run("DROP FUNCTION away() CASCADE");
        }
    }

    @Test
    void whatAnotherTransactionHasChangedInBetweenIsTriedAgain() {
        database.run("INSERT INTO shipments VALUES ('1', 'new')");
        TestDelivery<Order> delivery = TestDelivery.order("1");
        RecordingListener told = new RecordingListener();
        Outcome outcome = run(
                orders(Order::apply)
                        .listener(told)
                        .conditionalEffect(
                                ConditionalEffectTest::ship,
                                (order, db) -> database.client()
                                        .sql("UPDATE shipments SET state = 'paid'")
                                        .then()
                                        .thenReturn(NoRows.AGAIN))
                        .build(pool),
                delivery);

        assertThat(outcome).isInstanceOf(Outcome.Applied.class);
        assertThat(told.retries)
                .singleElement()
                .satisfies(retry -> assertThat(retry.kind()).isEqualTo(FailureKind.CONFLICT));
        assertThat(delivery.isAcknowledged()).isTrue();
    }

    @Test
    void recentKeysAreForMessagesWithIdsOfTheirOwn() {
        RecentKeys recent = RecentKeys.of(100, Duration.ofMinutes(1));
        assertThatThrownBy(() -> orders(Order::apply)
                        .conditionalEffect(ConditionalEffectTest::ship, NoRows.STALE)
                        .recentKeys(recent)
                        .build(pool))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("recentKeys");
        assertThatThrownBy(() -> ledger(1)
                        .effect(Order::apply)
                        .withoutClaims()
                        .recentKeys(recent)
                        .build(pool))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("recentKeys");
        IdempotentConsumer<Order> consumer = ledger(1).recentKeys(recent).build(pool);
        run(consumer, TestDelivery.order("1"));

        assertThat(run(consumer, TestDelivery.order("1"))).isInstanceOf(Outcome.Duplicate.class);
        assertThat(recent.hits()).isEqualTo(1);
    }

    @Test
    void whereAClaimTableIsNamedTheConditionIsLookedAtBehindTheClaim() {
        database.run("INSERT INTO shipments VALUES ('1', 'returned')");
        IdempotentConsumer<Order> consumer = orders(Order::apply)
                .conditionalEffect(ConditionalEffectTest::ship, ConditionalEffectTest::lookAtShipment)
                .claimTable(ClaimTable.processedMessages())
                .build(pool);

        assertThat(run(consumer, TestDelivery.order("1"))).isInstanceOf(Outcome.Stale.class);
        assertThat(run(consumer, TestDelivery.order("1"))).isInstanceOf(Outcome.Duplicate.class);
        assertThat(database.claims()).isEqualTo(1);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 64})
    void anEffectThatSetsAValueNeedsNoClaim(int maxBatch) {
        database.run("INSERT INTO shipments VALUES ('1', 'paid')");
        List<TestDelivery<Order>> deliveries =
                List.of(TestDelivery.order("1"), TestDelivery.order("1"), TestDelivery.order("1"));
        List<String> timeouts = new CopyOnWriteArrayList<>();
        List<Outcome> outcomes = run(
                orders((order, db) -> db.sql("SELECT current_setting('lock_timeout')")
                                .map(row -> Objects.requireNonNull(row.get(0, String.class)))
                                .one()
                                .doOnNext(timeouts::add)
                                .then(db.sql("UPDATE shipments SET state = 'shipped' WHERE order_id = :o")
                                        .bind("o", order.id())
                                        .then()))
                        .withoutClaims()
                        .maxBatch(maxBatch)
                        .build(pool),
                deliveries);

        assertThat(outcomes).hasSize(3).allMatch(Outcome.Applied.class::isInstance);
        assertThat(deliveries).allMatch(TestDelivery::isAcknowledged);
        assertThat(timeouts).hasSize(3).containsOnly("10s");
        assertThat(database.texts("SELECT state FROM shipments")).containsExactly("shipped");
        assertThat(database.claims()).isZero();
    }

    @Test
    void aCallerWhoOwnsTheTransactionCannotClaimWhereNothingIsClaimed() {
        IdempotentConsumer<Order> consumer =
                orders(Order::apply).withoutClaims().build(pool);
        assertThatThrownBy(() -> consumer.claimInTransaction("1").block())
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("keeps no claims");
    }

    @Test
    void aNaturalKeyNeedsAnEffectThatCounts() {
        assertThatThrownBy(() -> orders(Order::apply)
                        .naturalKey(UniqueKey.of("entries", "order_id"))
                        .build(pool))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("conditionalEffect");
    }

    enum Unfit {
        MISSING("DROP TABLE entries; CREATE TABLE entries_ ()", "does not exist in this database"),
        NO_INDEX("ALTER TABLE entries DROP CONSTRAINT entries_pkey", "has no unique index on exactly (\"order_id\")"),
        WIDER(
                "ALTER TABLE entries DROP CONSTRAINT entries_pkey, ADD UNIQUE (order_id, customer_id)",
                "has no unique index on exactly (\"order_id\")"),
        NULLABLE(
                "ALTER TABLE entries DROP CONSTRAINT entries_pkey, ALTER order_id DROP NOT NULL, ADD UNIQUE (order_id)",
                "may be null"),
        PARTIAL(
                "ALTER TABLE entries DROP CONSTRAINT entries_pkey; CREATE UNIQUE INDEX ON entries (order_id) WHERE points > 0",
                "partial, deferrable or invalid"),
        DEFERRABLE(
                "ALTER TABLE entries DROP CONSTRAINT entries_pkey, ADD UNIQUE (order_id) DEFERRABLE",
                "partial, deferrable or invalid"),
        FUZZY(
                "CREATE COLLATION alike (provider = icu, locale = 'und-u-ks-level2', deterministic = false);"
                        + " ALTER TABLE entries ALTER order_id TYPE text COLLATE alike",
                "nondeterministic collation"),
        UNLOGGED("ALTER TABLE entries SET UNLOGGED", "UNLOGGED");

        final String change;
        final String sentence;

        Unfit(String change, String sentence) {
            this.change = change;
            this.sentence = sentence;
        }
    }

    @ParameterizedTest
    @EnumSource
    void aTableThatDoesNotKeepTheKeyUniqueIsRefusedAtTheStart(Unfit unfit) {
        database.run(unfit.change);
        try {
            TestDelivery<Order> delivery = TestDelivery.order("1");
            assertThatThrownBy(() -> run(ledger(1).build(pool), delivery))
                    .isInstanceOf(InvalidSetupException.class)
                    .hasMessageContaining(unfit.sentence);
            assertThat(delivery.settlements()).isEmpty();
        } finally {
            database.run(
                    "DROP TABLE IF EXISTS entries_, entries; DROP COLLATION IF EXISTS alike; CREATE TABLE entries ()");
        }
    }
}
