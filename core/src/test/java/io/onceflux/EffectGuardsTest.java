package io.onceflux;

import static io.onceflux.Consumers.failureOf;
import static io.onceflux.Consumers.loyalty;
import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.policy;
import static io.onceflux.Consumers.run;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.Result;
import io.r2dbc.spi.ValidationDepth;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.reactivestreams.Publisher;
import org.springframework.r2dbc.connection.ConnectionFactoryUtils;
import org.springframework.r2dbc.connection.TransactionAwareConnectionFactoryProxy;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.test.StepVerifier;

/** All that an effect does is in the consumer's transaction, and the effect can neither end it nor outlive it. */
class EffectGuardsTest {

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(10);

    private static Mono<Void> toItsEnd(Publisher<? extends Result> results) {
        return Flux.from(results).flatMap(Result::getRowsUpdated).then();
    }

    private static Mono<Void> violatesNotNull(DatabaseClient db) {
        return db.sql("INSERT INTO point_ledger VALUES (NULL, NULL, NULL)").then();
    }

    @Test
    void theEffectsClientStaysInTheTransactionWhenTheReactorContextIsLost() {
        Effect<Order> lostContext = (order, db) -> Mono.fromFuture(() -> CompletableFuture.runAsync(() -> {})
                .thenComposeAsync(nothing -> order.note(db).toFuture()));
        assertThat(run(orders(lostContext).build(pool), TestDelivery.order("committed")))
                .isInstanceOf(Outcome.Applied.class);

        Effect<Order> thenFails =
                (order, db) -> Mono.from(lostContext.apply(order, db)).then(Mono.error(new PermanentFailure("no")));
        assertThat(run(orders(thenFails).build(pool), TestDelivery.order("rolled-back")))
                .isInstanceOf(Outcome.Failed.class);

        database.assertAppliedOnce(1);
        assertThat(database.effectsOf("committed")).isEqualTo(1);
    }

    @Test
    void whatJoinsSpringsTransactionThroughTheUsersFactoryIsInTheSameTransaction() {
        Effect<Order> springs = (order, db) -> ConnectionFactoryUtils.getConnection(pool)
                .flatMap(connection -> toItsEnd(connection
                        .createStatement(
                                "INSERT INTO point_ledger SELECT $1, pg_current_xact_id()::text, pg_backend_pid()")
                        .bind(0, order.id())
                        .execute()))
                .then(DatabaseClient.create(pool)
                        .sql("INSERT INTO point_ledger SELECT 'client', pg_current_xact_id()::text, pg_backend_pid()")
                        .then())
                .then(db.sql("INSERT INTO point_ledger SELECT 'own', pg_current_xact_id()::text, pg_backend_pid()")
                        .then());
        assertThat(run(orders(springs).build(pool), TestDelivery.order("1"))).isInstanceOf(Outcome.Applied.class);

        assertThat(database.effects()).isEqualTo(3);
        assertThat(database.count("SELECT count(DISTINCT (customer_id, points)) FROM point_ledger"))
                .isEqualTo(1);
        assertThat(database.count("SELECT count(*) FROM processed_messages WHERE xmin::text ="
                        + " (SELECT min(customer_id) FROM point_ledger)"))
                .as("the claim was written by the same transaction")
                .isEqualTo(1);
    }

    @Test
    void aClientThatIsUsedAfterTheEffectEndedFails() {
        CompletableFuture<DatabaseClient> kept = new CompletableFuture<>();
        CompletableFuture<Mono<Void>> prepared = new CompletableFuture<>();
        run(
                orders((order, db) -> {
                            kept.complete(db);
                            prepared.complete(Order.of("late").note(db));
                            return order.note(db);
                        })
                        .build(pool),
                TestDelivery.order("1"));

        for (Mono<Void> late : List.of(
                prepared.join(),
                Order.of("late").note(kept.join()),
                kept.join().sql("SELECT 1").then())) {
            StepVerifier.create(late)
                    .expectErrorSatisfies(error ->
                            assertThat(Causes.root(error)).hasMessageContaining("the effect of loyalty/1 has ended"))
                    .verify();
        }
        database.assertAppliedOnce(1);
    }

    @Test
    void anEffectThatCompletesWhileItsStatementStillRunsIsNotAcknowledgedAsApplied() {
        List<Disposable> strays = new CopyOnWriteArrayList<>();
        IdempotentConsumer<Order> consumer = orders((order, db) -> {
                    strays.add(order.note(db)
                            .then(db.sql("SELECT pg_sleep(1)").then())
                            .subscribe(done -> {}, error -> {}));
                    return Mono.delay(Duration.ofMillis(50));
                })
                .failurePolicy(policy().maxAttempts(1).build())
                .build(pool);

        Failure failure = failureOf(run(consumer, TestDelivery.order("stray")));

        assertThat(failure.kind()).isEqualTo(FailureKind.EFFECT);
        assertThat(failure.reason()).contains("must contain every statement that it starts");
        assertThat(database.effects()).isZero();
        assertThat(database.claims()).isZero();
        strays.forEach(Disposable::dispose);
    }

    @Test
    void anEffectCannotEndTheTransactionThroughTheConnection() {
        for (String call : List.of("commitTransaction", "rollbackTransaction", "beginTransaction")) {
            Effect<Order> ends = (order, db) -> order.note(db)
                    .then(db.inConnection(connection -> Mono.from(
                            switch (call) {
                                case "commitTransaction" -> connection.commitTransaction();
                                case "rollbackTransaction" -> connection.rollbackTransaction();
                                default -> connection.beginTransaction();
                            })));
            Failure failure = failureOf(run(orders(ends).build(pool), TestDelivery.order(call)));
            assertThat(failure.reason()).contains("an effect cannot call " + call);
        }
        database.assertAppliedOnce(0);
    }

    /** Libraries that have transactions of their own get Spring's connection through such a proxy. */
    @Test
    void whatJoinsTheTransactionCannotEndItEither() {
        ConnectionFactory joining = new TransactionAwareConnectionFactoryProxy(pool);
        Map<String, Function<Connection, Publisher<?>>> calls = Map.of(
                "beginTransaction", Connection::beginTransaction,
                "commitTransaction", Connection::commitTransaction,
                "rollbackTransaction", Connection::rollbackTransaction,
                "setAutoCommit", connection -> connection.setAutoCommit(true));
        calls.forEach((name, call) -> {
            Effect<Order> ends = (order, db) -> order.note(db)
                    .then(Mono.usingWhen(
                            joining.create(), connection -> Mono.from(call.apply(connection)), Connection::close))
                    .then(Order.of("after").note(db));
            Failure failure = failureOf(run(orders(ends).build(pool), TestDelivery.order(name)));
            assertThat(failure.reason()).contains("an effect cannot call " + name);
        });
        database.assertAppliedOnce(0);
        assertThat(database.effects()).isZero();
    }

    @ParameterizedTest
    @ValueSource(strings = {"commit", "close"})
    void whatJoinsTheTransactionCannotEndItAsItIsCancelledEither(String call) {
        AtomicInteger entered = new AtomicInteger();
        Effect<Order> ends = (order, db) -> order.apply(db)
                .then(Mono.usingWhen(
                        ConnectionFactoryUtils.getConnection(pool),
                        connection -> entered.getAndIncrement() == 0 ? Mono.never() : Mono.empty(),
                        connection -> call.equals("close") ? connection.close() : Mono.empty(),
                        (connection, error) -> Mono.empty(),
                        connection -> call.equals("close") ? connection.close() : connection.commitTransaction()));
        IdempotentConsumer<Order> consumer = orders(ends).build(pool);
        TestDelivery<Order> delivery = TestDelivery.order("1");
        Disposable cancelled = consumer.process(delivery).subscribe();
        await().until(() -> entered.get() == 1);
        cancelled.dispose();
        database.assertNothingLeaked();
        assertThat(database.claims()).isZero();
        assertThat(database.effects()).isZero();

        assertThat(run(consumer, delivery)).isInstanceOf(Outcome.Applied.class);
        database.assertAppliedOnce(1);
    }

    @Test
    void whatJoinsTheTransactionCannotGiveItsConnectionAway() {
        Effect<Order> closes = (order, db) -> ConnectionFactoryUtils.getConnection(pool)
                .flatMap(connection -> Mono.from(connection.close()))
                .then(order.apply(db));
        List<Outcome> outcomes = run(orders(closes).build(pool), TestDelivery.orders("c", 40));

        assertThat(outcomes).allMatch(Outcome.Applied.class::isInstance);
        database.assertAppliedOnce(40);
        database.assertNothingLeaked();
    }

    @Test
    void anEndedEffectsConnectionIsOfNoUseToAnother() {
        Map<String, Function<Connection, Publisher<?>>> calls = Map.of(
                "createSavepoint", connection -> connection.createSavepoint("t"),
                "releaseSavepoint", connection -> connection.releaseSavepoint("s"),
                "rollbackTransactionToSavepoint", connection -> connection.rollbackTransactionToSavepoint("s"),
                "validate", connection -> connection.validate(ValidationDepth.REMOTE),
                "createStatement", connection -> Mono.fromSupplier(() -> connection.createStatement("SELECT 1")));
        calls.forEach((name, call) -> {
            AtomicReference<Connection> kept = new AtomicReference<>();
            CompletableFuture<Throwable> error = new CompletableFuture<>();
            Effect<Order> effect = (order, db) -> kept.get() == null
                            && !order.id().equals("plug")
                    ? db.inConnection(connection -> {
                                kept.set(connection);
                                return Mono.from(connection.createSavepoint("s"));
                            })
                            .then(order.note(db))
                    : order.note(db)
                            .then(Mono.defer(
                                            () -> kept.get() == null ? Mono.empty() : Mono.from(call.apply(kept.get())))
                                    .then()
                                    .onErrorResume(refused -> {
                                        error.complete(refused);
                                        return Mono.empty();
                                    }));
            List<Outcome> outcomes = inOneBatch(effect, name);

            assertThat(outcomes).allMatch(Outcome.Applied.class::isInstance);
            assertThat(database.effects()).isEqualTo(4);
            assertThat(database.claims()).isEqualTo(4);
            database.empty();
            assertThat(error)
                    .as(name)
                    .isCompletedWithValueMatching(refused ->
                            String.valueOf(Causes.root(refused).getMessage()).contains("the effect of loyalty/"));
        });
    }

    /** Three messages in one transaction, behind one that is let through first. */
    private List<Outcome> inOneBatch(Effect<Order> effect, String prefix) {
        Plug plug = new Plug();
        Effect<Order> butForThePlug =
                (order, db) -> order.id().equals("plug") ? order.note(db) : effect.apply(order, db);
        return plug.run(
                Consumers.batches(10, plug.then(butForThePlug)).build(pool),
                plug.before(TestDelivery.orders(prefix + "-", 3)));
    }

    @Test
    void aStatementThatAFilterHasKeptDoesNotRunInAnotherEffect() {
        AtomicReference<Mono<Void>> kept = new AtomicReference<>();
        CompletableFuture<Throwable> error = new CompletableFuture<>();
        Effect<Order> effect = (order, db) -> {
            Mono<Void> before = kept.get();
            return before == null
                    ? db.sql("INSERT INTO point_ledger VALUES ('stray', 'x', 1)")
                            .filter((statement, next) -> {
                                kept.set(toItsEnd(next.execute(statement)));
                                return Flux.empty();
                            })
                            .then()
                            .then(order.note(db))
                    : order.note(db).then(before.onErrorResume(refused -> {
                        error.complete(refused);
                        return Mono.empty();
                    }));
        };
        List<Outcome> outcomes = inOneBatch(effect, "f");

        assertThat(outcomes).allMatch(Outcome.Applied.class::isInstance);
        assertThat(error)
                .isCompletedWithValueMatching(refused ->
                        String.valueOf(refused.getMessage()).contains("the effect of loyalty/f-0 has ended"));
        assertThat(database.effectsOf("stray")).isZero();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "COMMIT",
                "ROLLBACK",
                "commit work",
                "  -- done\n /* yes */ End;",
                "ABORT",
                "COMMIT AND CHAIN",
                "ROLLBACK AND CHAIN",
                "BEGIN",
                "START TRANSACTION",
                "PREPARE TRANSACTION 'x'",
            })
    void anEffectCannotEndTheTransactionWithSql(String sql) {
        TestDelivery<Order> delivery = TestDelivery.order("1");
        Failure failure = failureOf(run(
                orders((order, db) -> order.note(db)
                                .then(db.sql(sql).then())
                                .then(Order.of("after").note(db)))
                        .build(pool),
                delivery));

        assertThat(failure.reason()).contains("transaction");
        assertThat(delivery.isDeadLettered()).isTrue();
        database.assertAppliedOnce(0);
    }

    @Test
    void noOtherWayToTheConnectionCanEndTheTransactionWithSqlEither() {
        Effect<Order> springs = (order, db) ->
                order.note(db).then(DatabaseClient.create(pool).sql("COMMIT").then());
        Effect<Order> batch = (order, db) -> order.note(db)
                .then(db.inConnection(connection -> toItsEnd(
                        connection.createBatch().add("SELECT 1").add("COMMIT").execute())));
        for (Effect<Order> effect : List.of(springs, batch)) {
            Outcome outcome = run(
                    orders(effect)
                            .failurePolicy(policy().maxAttempts(1).build())
                            .build(pool),
                    TestDelivery.order("1"));
            assertThat(failureOf(outcome).reason()).contains("transaction");
        }
        database.assertAppliedOnce(0);
    }

    @Test
    void aTransactionThatWasEndedUnseenIsNotAcknowledgedAsApplied() {
        for (String sql : List.of("SELECT 1; ROLLBACK", "SELECT 1; SELECT '; '; /* ; */ ROLLBACK AND CHAIN")) {
            TestDelivery<Order> delivery = TestDelivery.order("1");
            Effect<Order> hidden = (order, db) -> order.note(db)
                    .then(db.inConnection(connection ->
                            toItsEnd(connection.createStatement(sql).execute())));
            assertThat(run(orders(hidden).build(pool), delivery)).isInstanceOf(Outcome.Failed.class);
            assertThat(delivery.isDeadLettered()).isTrue();
        }
        database.assertAppliedOnce(0);
    }

    @Test
    void savepointsAreAnEffectsOwn() {
        Effect<Order> partly = (order, db) -> order.note(db)
                .then(db.sql("SAVEPOINT s").then())
                .then(violatesNotNull(db))
                .onErrorResume(error -> db.sql("ROLLBACK TO SAVEPOINT s").then())
                .then(db.sql("RELEASE SAVEPOINT s").then());
        assertThat(run(orders(partly).build(pool), TestDelivery.order("1"))).isInstanceOf(Outcome.Applied.class);
        database.assertAppliedOnce(1);
    }

    @Test
    void anErrorThatTheEffectSwallowedFailsTheCommitInsteadOfLosingTheEffect() {
        Effect<Order> swallows =
                (order, db) -> order.note(db).then(violatesNotNull(db)).onErrorComplete();
        TestDelivery<Order> delivery = TestDelivery.order("1");
        Failure failure = failureOf(run(orders(swallows).build(pool), delivery));

        assertThat(failure.kind()).isEqualTo(FailureKind.EFFECT);
        assertThat(Objects.requireNonNull(failure.sqlState())).isEqualTo("99999");
        assertThat(failure.reason())
                .isEqualTo(
                        "the effect has swallowed the error of a statement, after which PostgreSQL commits nothing: let the error"
                                + " through, or go back to a savepoint");
        assertThat(delivery.isDeadLettered()).isTrue();
        database.assertAppliedOnce(0);
    }

    @Test
    void aConnectionThatComesWithAnOpenTransactionIsGivenUpAndWhatIsInItIsNotCommitted() {
        ConnectionPool dirty = database.pool(5);
        Mono.usingWhen(
                        dirty.create(),
                        connection -> toItsEnd(connection
                                .createStatement("BEGIN; INSERT INTO point_ledger VALUES ('stray', 'c', 1)")
                                .execute()),
                        connection -> connection.close())
                .block();
        assertThat(database.openTransactions()).isEqualTo(1);

        assertThat(run(loyalty(dirty), TestDelivery.order("1"))).isInstanceOf(Outcome.Applied.class);
        database.assertAppliedOnce(1);
    }
}
