package io.onceflux;

import static io.onceflux.Consumers.batches;
import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.run;
import static io.onceflux.Consumers.start;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.onceflux.postgres.ClaimTable;
import io.r2dbc.pool.ConnectionPool;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;
import java.util.function.IntToLongFunction;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.transaction.annotation.Isolation;

/** A message with the id of another and other content is quarantined, and never dropped as a duplicate. */
class FingerprintTest {

    private static final ClaimTable CLAIMS = ClaimTable.named("fingerprinted").withFingerprintColumn("fingerprint");

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(12);

    @BeforeEach
    void createTable() {
        database.run(CLAIMS.createSql());
    }

    @AfterEach
    void dropTable() {
        database.run("DROP TABLE IF EXISTS fingerprinted");
    }

    private static TestDelivery<Order> earning(String id, long points) {
        return TestDelivery.of(new Order(id, "c", points));
    }

    private static ConsumerBuilder<Order> comparing(ConsumerBuilder<Order> consumer) {
        return consumer.claimTable(CLAIMS).fingerprintedBy(order -> order.customer() + " " + order.points());
    }

    private static void assertConflict(Outcome outcome, TestDelivery<Order> delivery) {
        assertThat(outcome).isInstanceOfSatisfying(Outcome.Conflict.class, conflict -> {
            assertThat(conflict.failure().reason())
                    .isEqualTo("another message with this id, but with other content, was applied before");
            assertThat(conflict.failure().kind()).isEqualTo(FailureKind.PERMANENT);
            assertThat(conflict.failure().attempts()).isEqualTo(1);
        });
        assertThat(delivery.isDeadLettered()).isTrue();
    }

    private long points() {
        return database.count("SELECT coalesce(sum(points), 0)::bigint FROM point_ledger");
    }

    @ParameterizedTest
    @EnumSource(names = {"DEFAULT", "REPEATABLE_READ", "SERIALIZABLE"})
    void otherContentUnderTheSameIdIsAConflict(Isolation isolation) {
        IdempotentConsumer<Order> consumer =
                comparing(orders(Order::apply)).isolation(isolation).build(pool);
        TestDelivery<Order> same = earning("1", 10);
        TestDelivery<Order> other = earning("1", 1_000);

        assertThat(run(consumer, earning("1", 10))).isInstanceOf(Outcome.Applied.class);
        assertThat(run(consumer, same)).isInstanceOf(Outcome.Duplicate.class);
        assertConflict(run(consumer, other), other);

        assertThat(same.isAcknowledged()).isTrue();
        assertThat(points()).isEqualTo(10);
    }

    @ParameterizedTest
    @EnumSource(names = {"DEFAULT", "SERIALIZABLE"})
    void withinABatchCopiesAreComparedToo(Isolation isolation) {
        Plug plug = new Plug();
        TestDelivery<Order> other = earning("1", 1_000);
        List<TestDelivery<Order>> deliveries =
                plug.before(List.of(earning("1", 10), other, earning("1", 10), earning("2", 20), earning("1", 10)));
        List<Outcome> outcomes = plug.run(
                comparing(batches(64, plug.then(Order::apply)))
                        .isolation(isolation)
                        .build(pool),
                deliveries);

        assertThat(outcomes).filteredOn(Outcome.Applied.class::isInstance).hasSize(3);
        assertThat(outcomes).filteredOn(Outcome.Duplicate.class::isInstance).hasSize(2);
        assertConflict(
                outcomes.stream()
                        .filter(Outcome.Conflict.class::isInstance)
                        .findFirst()
                        .orElseThrow(),
                other);
        assertThat(database.rows("SELECT order_id FROM point_ledger WHERE order_id IN ('1', '2')"))
                .hasSize(2);
        assertThat(database.count("SELECT sum(points)::bigint FROM point_ledger WHERE customer_id = 'c'"))
                .isEqualTo(30);
    }

    /** The first of a batch is not the message, where an older claim says otherwise. */
    @ParameterizedTest
    @EnumSource(names = {"DEFAULT", "SERIALIZABLE"})
    void whatIsStoredDecidesWhichOfABatchIsTheMessage(Isolation isolation) {
        run(comparing(orders(Order::apply)).build(pool), earning("1", 10));
        Plug plug = new Plug();
        TestDelivery<Order> other = earning("1", 1_000);
        TestDelivery<Order> same = earning("1", 10);
        List<Outcome> outcomes = plug.run(
                comparing(batches(64, plug.then(Order::apply)))
                        .isolation(isolation)
                        .build(pool),
                plug.before(List.of(other, same, earning("2", 20))));

        assertThat(outcomes).filteredOn(Outcome.Duplicate.class::isInstance).hasSize(1);
        assertConflict(
                outcomes.stream()
                        .filter(Outcome.Conflict.class::isInstance)
                        .findFirst()
                        .orElseThrow(),
                other);
        assertThat(same.isAcknowledged()).isTrue();
    }

    /** Claimed, compared and committed together. */
    @ParameterizedTest
    @EnumSource(names = {"DEFAULT", "REPEATABLE_READ", "SERIALIZABLE"})
    void ofABatchOf64EachIsComparedWithWhatIsStored(Isolation isolation) {
        run(comparing(batches(64, Order::apply)).build(pool), earnings(0, 42, n -> 10));
        Plug plug = new Plug();
        List<TestDelivery<Order>> deliveries = earnings(0, 64, n -> n % 2 == 0 ? 10 : 1_000);
        List<Outcome> outcomes = plug.run(
                comparing(batches(64, plug.then(Order::apply)))
                        .isolation(isolation)
                        .build(pool),
                plug.before(deliveries));

        assertThat(database.count("SELECT count(DISTINCT xmin::text) FROM fingerprinted WHERE message_key IN"
                        + " (SELECT n::text FROM generate_series(42, 63) n)"))
                .as("transactions of what was fresh")
                .isEqualTo(1);
        for (int n = 0; n < 64; n++) {
            assertThat(outcomes.get(n + 1).key()).isEqualTo(MessageKey.of("loyalty", "" + n));
            assertThat(outcomes.get(n + 1)).as("message %d", n).isInstanceOf(outcomeOf(n));
            assertThat(deliveries.get(n).isDeadLettered()).isEqualTo(outcomes.get(n + 1) instanceof Outcome.Conflict);
        }
        assertThat(database.count("SELECT count(*) FROM point_ledger")).isEqualTo(65);
        assertThat(database.count("SELECT count(DISTINCT order_id) FROM point_ledger"))
                .isEqualTo(65);
    }

    private static Class<? extends Outcome> outcomeOf(int n) {
        if (n >= 42) {
            return Outcome.Applied.class;
        }
        return n % 2 == 0 ? Outcome.Duplicate.class : Outcome.Conflict.class;
    }

    private static List<TestDelivery<Order>> earnings(int from, int to, IntToLongFunction points) {
        return IntStream.range(from, to)
                .mapToObj(n -> earning("" + n, points.applyAsLong(n)))
                .toList();
    }

    /** Under a snapshot, the other's claim is seen by the next transaction only. */
    @ParameterizedTest
    @CsvSource({"DEFAULT, 1", "DEFAULT, 64", "SERIALIZABLE, 1", "SERIALIZABLE, 64"})
    void twoInstancesThatMeetCompareWithWhoeverWasFirst(Isolation isolation, int maxBatch) {
        List<TestDelivery<Order>> here = earnings(0, 256, n -> 10);
        List<TestDelivery<Order>> there = earnings(0, 256, n -> n % 2 == 0 ? 10 : 1_000);
        ConsumerBuilder<Order> consumer =
                comparing(batches(maxBatch, Order::apply)).isolation(isolation);
        CompletableFuture<List<Outcome>> elsewhere = start(consumer.build(database.pool(4)), there);
        List<Outcome> outcomes = run(consumer.build(pool), here);
        List<Outcome> others = elsewhere.join();

        for (int n = 0; n < 256; n++) {
            Outcome one = outcomes.get(n);
            Outcome other = others.get(n);
            assertThat(List.of(one, other))
                    .as("message %d", n)
                    .filteredOn(Outcome.Applied.class::isInstance)
                    .hasSize(1);
            Outcome second = one instanceof Outcome.Applied ? other : one;
            assertThat(second)
                    .as("message %d", n)
                    .isInstanceOf(n % 2 == 0 ? Outcome.Duplicate.class : Outcome.Conflict.class);
        }
        assertThat(database.count("SELECT count(*) FROM point_ledger")).isEqualTo(256);
    }

    /** A message without a fingerprint says nothing about another one. */
    @Test
    void aCopyWithoutAFingerprintHidesNoConflict() {
        ConsumerBuilder<Order> consumer = orders(Order::apply)
                .claimTable(CLAIMS)
                .fingerprintedBy(order -> order.points() < 0 ? null : "" + order.points());
        run(consumer.build(pool), earning("1", 10));
        Plug plug = new Plug();
        TestDelivery<Order> other = earning("1", 1_000);
        RecentKeys recent = RecentKeys.of(100, Duration.ofMinutes(1));
        IdempotentConsumer<Order> batching = consumer.effect(plug.then(Order::apply))
                .recentKeys(recent)
                .lanes(1)
                .maxBatch(64)
                .build(pool);
        List<Outcome> outcomes = plug.run(batching, plug.before(List.of(earning("1", -1), other)));

        assertThat(outcomes).filteredOn(Outcome.Duplicate.class::isInstance).hasSize(1);
        assertThat(outcomes).filteredOn(Outcome.Conflict.class::isInstance).hasSize(1);
        assertThat(run(batching, earning("1", 1_000))).isInstanceOf(Outcome.Conflict.class);
    }

    @Test
    void aClaimWithoutAFingerprintEqualsAnyMessage() {
        run(orders(Order::apply).claimTable(CLAIMS).build(pool), earning("old", 10));
        IdempotentConsumer<Order> consumer = orders(Order::apply)
                .claimTable(CLAIMS)
                .fingerprintedBy(order -> order.points() < 0 ? null : "" + order.points())
                .build(pool);

        assertThat(run(consumer, earning("old", 1_000))).isInstanceOf(Outcome.Duplicate.class);
        assertThat(run(consumer, earning("new", -1))).isInstanceOf(Outcome.Applied.class);
        assertThat(run(consumer, earning("new", 5))).isInstanceOf(Outcome.Duplicate.class);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 64})
    void recentKeysHideNoConflict(int maxBatch) {
        RecentKeys recent = RecentKeys.of(100, Duration.ofMinutes(1));
        IdempotentConsumer<Order> consumer =
                comparing(batches(maxBatch, Order::apply)).recentKeys(recent).build(pool);
        run(consumer, earning("1", 10));
        TestDelivery<Order> other = earning("1", 1_000);

        assertConflict(run(consumer, other), other);
        assertThat(recent.hits()).isZero();
        assertThat(run(consumer, earning("1", 10))).isInstanceOf(Outcome.Duplicate.class);
        assertThat(recent.hits()).isEqualTo(1);
        assertConflict(run(consumer, earning("1", 1_000)), other);
        assertThat(points()).isEqualTo(10);
    }

    @Test
    void keysOfOneColumnAndOfTypeUuidHaveFingerprintsToo() {
        database.run("CREATE TABLE uuids (message_id uuid PRIMARY KEY, content bigint)");
        try {
            IdempotentConsumer<Order> consumer = orders(Order::apply)
                    .claimTable(ClaimTable.named("uuids")
                            .withOneColumnKey("message_id")
                            .withoutProcessedAt()
                            .withFingerprintColumn("content"))
                    .fingerprintedBy(order -> "" + order.points())
                    .build(pool);
            String id = "0189C2D8-7B5B-7E3F-8A21-5E0C8F6B1D11";
            TestDelivery<Order> other = earning(id.toLowerCase(Locale.ROOT), 1_000);

            assertThat(run(consumer, earning(id, 10))).isInstanceOf(Outcome.Applied.class);
            assertThat(run(consumer, earning(id.toLowerCase(Locale.ROOT), 10))).isInstanceOf(Outcome.Duplicate.class);
            assertConflict(run(consumer, other), other);
        } finally {
            database.run("DROP TABLE uuids");
        }
    }

    @Test
    void aFunctionThatThrowsMakesTheMessageADeadLetter() {
        TestDelivery<Order> delivery = earning("1", 10);
        Outcome outcome = run(
                orders(Order::apply)
                        .claimTable(CLAIMS)
                        .fingerprintedBy(order -> {
                            throw new IllegalStateException("no content");
                        })
                        .build(pool),
                delivery);

        assertThat(Consumers.failureOf(outcome).reason()).contains("fingerprintedBy threw");
        assertThat(delivery.isDeadLettered()).isTrue();
    }

    @Test
    void aTableWithoutTheColumnIsRefused() {
        assertThatThrownBy(() -> orders(Order::apply).fingerprintedBy(Order::id).build(pool))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("withFingerprintColumn");

        database.run("ALTER TABLE fingerprinted DROP COLUMN fingerprint");
        assertThatThrownBy(() -> run(comparing(orders(Order::apply)).build(pool), earning("1", 10)))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("ALTER TABLE \"fingerprinted\" ADD COLUMN \"fingerprint\" bigint;");

        database.run("ALTER TABLE fingerprinted ADD COLUMN fingerprint text");
        assertThatThrownBy(() -> run(comparing(orders(Order::apply)).build(pool), earning("1", 10)))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("must be of type bigint");

        database.run(
                "ALTER TABLE fingerprinted DROP COLUMN fingerprint, ADD COLUMN fingerprint bigint NOT NULL DEFAULT 0");
        assertThatThrownBy(() -> run(comparing(orders(Order::apply)).build(pool), earning("1", 10)))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("has no default");
    }
}
