package io.onceflux;

import static io.onceflux.Consumers.failureOf;
import static io.onceflux.Consumers.loyalty;
import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.policy;
import static io.onceflux.Consumers.run;
import static io.onceflux.Consumers.start;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.postgres.ClaimTable;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.IsolationLevel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.r2dbc.core.DatabaseClient;
import org.springframework.transaction.annotation.Isolation;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

class ConflictTest {

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(12);
    private final RecordingListener told = new RecordingListener();

    /** What a test leaves could refer to tables that the next one empties. */
    @AfterEach
    void dropGuarded() {
        database.run("DROP TABLE IF EXISTS guarded");
    }

    @ParameterizedTest
    @EnumSource(
            value = Isolation.class,
            names = {"DEFAULT", "REPEATABLE_READ", "SERIALIZABLE"})
    void theSameIdAtOnceOnTwoInstancesIsAppliedOnceUnderEveryIsolationLevel(Isolation isolation) {
        List<IdempotentConsumer<Order>> instances = List.of(
                orders(Order::apply).isolation(isolation).listener(told).build(pool),
                orders(Order::apply).isolation(isolation).listener(told).build(database.pool(5)));
        for (int round = 0; round < 200; round++) {
            String id = isolation + "-" + round;
            List<Outcome> outcomes = Flux.fromIterable(instances)
                    .flatMap(instance -> instance.process(TestDelivery.order(id)))
                    .collectList()
                    .block();
            assertThat(outcomes)
                    .extracting(Object::getClass)
                    .map(Class::getSimpleName)
                    .containsExactlyInAnyOrder("Applied", "Duplicate");
        }
        database.assertAppliedOnce(200);
        assertThat(told.sqlStatesOfRetries())
                .as("conflicts are met and tried again from BEGIN")
                .doesNotContain("25P02")
                .allMatch(state -> isolation != Isolation.DEFAULT && Objects.equals(state, "40001"));
        if (isolation != Isolation.DEFAULT) {
            assertThat(told.retries).isNotEmpty();
        }
    }

    @Test
    void theIsolationLevelIsTheOneThatWasAskedFor() {
        run(
                orders((order, db) -> db.sql(
                                        "INSERT INTO point_ledger SELECT :o, current_setting('transaction_isolation'), 0")
                                .bind("o", order.id())
                                .then())
                        .isolation(Isolation.SERIALIZABLE)
                        .build(pool),
                TestDelivery.order("1"));
        assertThat(database.texts("SELECT customer_id FROM point_ledger"))
                .containsExactly(IsolationLevel.SERIALIZABLE.asSql().toLowerCase(Locale.ROOT));
    }

    @Test
    void copiesThatWaitForALongEffectHoldUpNoOtherMessageAndOneTakesOverAfterItsRollback() {
        Sinks.Empty<Void> end = Sinks.empty();
        CompletableFuture<Outcome> long1 = orders((order, db) -> order.note(db).then(end.asMono()))
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
        IdempotentConsumer<Order> consumer = orders(Order::apply)
                .orderedBy(Order::id)
                .lanes(4)
                .lockTimeout(Duration.ofMillis(200))
                .listener(told)
                .build(database.pool(5));
        CompletableFuture<List<Outcome>> second = start(consumer, deliveries);
        await().untilAsserted(() -> {
            assertThat(told.retries).hasSizeGreaterThan(3);
            assertThat(database.effects()).isGreaterThan(30);
        });
        end.emitError(new IllegalStateException("rolled back"), Sinks.EmitFailureHandler.FAIL_FAST);

        assertThat(long1.join()).isInstanceOf(Outcome.Failed.class);
        List<Outcome> outcomes = second.join();
        assertThat(outcomes).filteredOn(Outcome.Applied.class::isInstance).hasSize(51);
        assertThat(outcomes).filteredOn(Outcome.Duplicate.class::isInstance).hasSize(9);
        assertThat(told.sqlStatesOfRetries()).containsOnly("55P03");
        assertThat(deliveries).allMatch(TestDelivery::isAcknowledged);
        database.assertAppliedOnce(51);
    }

    @Test
    void aConflictThatATriggerRaisesOnceIsTriedAgainInANewTransaction() {
        database.run("""
                CREATE TABLE guarded (id text PRIMARY KEY);
                CREATE SEQUENCE IF NOT EXISTS tries;
                ALTER SEQUENCE tries RESTART;
                CREATE OR REPLACE FUNCTION fail_first() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN
                    IF nextval('tries') = 1 THEN RAISE EXCEPTION 'not yet' USING ERRCODE = '40001'; END IF;
                    RETURN NEW;
                END $$;
                CREATE TRIGGER fail_first BEFORE INSERT ON guarded FOR EACH ROW EXECUTE FUNCTION fail_first()""");
        TestDelivery<Order> delivery = TestDelivery.order("1");
        Outcome outcome = run(
                orders((order, db) -> order.note(db)
                                .then(db.sql("INSERT INTO guarded VALUES (:o)")
                                        .bind("o", order.id())
                                        .then()))
                        .listener(told)
                        .build(pool),
                delivery);

        assertThat(outcome).isInstanceOf(Outcome.Applied.class);
        assertThat(told.retries).extracting(RecordingListener.Retry::kind).containsExactly(FailureKind.CONFLICT);
        assertThat(told.sqlStatesOfRetries()).containsExactly("40001");
        database.assertAppliedOnce(1);
    }

    @Test
    void aUniqueViolationOfTheEffectsOwnTableIsPermanentUnderReadCommitted() {
        database.run("CREATE TABLE guarded (id text PRIMARY KEY); INSERT INTO guarded VALUES ('taken')");
        Failure failure = failureOf(run(orders(takes("taken")).listener(told).build(pool), TestDelivery.order("1")));

        assertThat(failure.kind()).isEqualTo(FailureKind.PERMANENT);
        assertThat(failure.sqlState()).isEqualTo("23505");
        assertThat(told.retries).isEmpty();
        database.assertAppliedOnce(0);
    }

    @Test
    void underRepeatableReadItMayBeAConflictAndIsTriedOnceMore() {
        database.run("CREATE TABLE guarded (id text PRIMARY KEY); INSERT INTO guarded VALUES ('taken')");
        Failure failure = failureOf(run(
                orders(takes("taken"))
                        .isolation(Isolation.REPEATABLE_READ)
                        .listener(told)
                        .build(pool),
                TestDelivery.order("1")));

        assertThat(failure.kind()).isEqualTo(FailureKind.PERMANENT);
        assertThat(told.sqlStatesOfRetries()).containsExactly("23505");
        database.assertAppliedOnce(0);
    }

    @Test
    void aDeadlockBetweenEffectsEndsWithBothApplied() {
        database.run("INSERT INTO balances VALUES ('x', 0), ('y', 0)");
        AtomicInteger first = new AtomicInteger();
        Sinks.Empty<Void> both = Sinks.empty();
        Effect<Order> crossing = (order, db) -> add(db, order.id().equals("1") ? "x" : "y")
                .then(Mono.defer(() -> {
                    if (first.incrementAndGet() == 2) {
                        both.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);
                    }
                    return both.asMono();
                }))
                .then(add(db, order.id().equals("1") ? "y" : "x"))
                .then(order.note(db));
        IdempotentConsumer<Order> consumer = orders(crossing).listener(told).build(pool);
        List<Outcome> outcomes = Flux.just("1", "2")
                .flatMap(id -> consumer.process(TestDelivery.order(id)))
                .collectList()
                .block();

        assertThat(outcomes).hasSize(2).allMatch(Outcome.Applied.class::isInstance);
        assertThat(told.sqlStatesOfRetries()).containsExactly("40P01");
        assertThat(database.texts("SELECT points::text FROM balances")).containsExactly("2", "2");
        database.assertAppliedOnce(2);
    }

    @Test
    void aDeferredConstraintThatFailsTheCommitIsReportedWithItsOwnSqlState() {
        database.run("CREATE TABLE guarded (id text, parent text UNIQUE DEFERRABLE INITIALLY DEFERRED,"
                + " FOREIGN KEY (id) REFERENCES balances DEFERRABLE INITIALLY DEFERRED)");
        TestDelivery<Order> orphan = TestDelivery.order("1");
        Failure foreignKey = failureOf(run(
                orders((order, db) -> order.note(db)
                                .then(db.sql("INSERT INTO guarded VALUES ('nobody', 'a')")
                                        .then()))
                        .build(pool),
                orphan));
        assertThat(foreignKey.sqlState()).isEqualTo("23503");
        assertThat(foreignKey.kind()).isEqualTo(FailureKind.PERMANENT);
        assertThat(orphan.isDeadLettered()).isTrue();

        Failure unique = failureOf(run(
                orders((order, db) -> order.note(db)
                                .then(db.sql("INSERT INTO guarded VALUES (NULL, 'a'), (NULL, 'a')")
                                        .then()))
                        .build(pool),
                TestDelivery.order("2")));
        assertThat(unique.sqlState()).isEqualTo("23505");
        database.assertAppliedOnce(0);

        assertThat(run(loyalty(pool), TestDelivery.order("1"))).isInstanceOf(Outcome.Applied.class);
    }

    private static Effect<Order> takes(String id) {
        return (order, db) -> order.note(db)
                .then(db.sql("INSERT INTO guarded VALUES (:id)").bind("id", id).then());
    }

    private static Mono<Void> add(DatabaseClient db, String customer) {
        return db.sql("UPDATE balances SET points = points + 1 WHERE customer_id = :c")
                .bind("c", customer)
                .then();
    }

    /** Others that have the claim one after the other, each for less than the lock timeout; here it is simply not answered. */
    @Test
    void aClaimThatIsHeldBeyondTheTimeLimitIsAConflictAndNotTheEffectsFault() {
        AtomicInteger held = new AtomicInteger();
        Claims table = Claims.in(ClaimTable.processedMessages());
        Claims heldByOthers = new Claims() {
            @Override
            public Mono<List<String>> verify(Connection connection, String consumer) {
                return table.verify(connection, consumer);
            }

            @Override
            public Mono<Claimed> claim(Connection inTransaction, List<Claim> claims, Duration lockTimeout) {
                return claims.get(0).key().id().equals("1") && held.getAndIncrement() < 5
                        ? Mono.never()
                        : table.claim(inTransaction, claims, lockTimeout);
            }
        };
        Outcome outcome = run(
                orders(Order::apply)
                        .claims(heldByOthers)
                        .lockTimeout(Duration.ofMillis(100))
                        .timeLimit(Duration.ofMillis(200))
                        .listener(told)
                        .build(pool),
                TestDelivery.order("1"));
        assertThat(outcome).isInstanceOf(Outcome.Applied.class);
        assertThat(told.retries).hasSize(5).allMatch(retry -> retry.kind() == FailureKind.CONFLICT);
        database.assertAppliedOnce(1);
    }
}
