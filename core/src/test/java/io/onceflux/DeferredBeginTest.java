package io.onceflux;

import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.policy;
import static io.onceflux.Consumers.run;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.postgres.CheckedClaimTable.Taken;
import io.onceflux.postgres.ClaimTable;
import io.onceflux.postgres.NewClaim;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.ConnectionFactoryMetadata;
import io.r2dbc.spi.IsolationLevel;
import io.r2dbc.spi.Result;
import io.r2dbc.spi.Statement;
import io.r2dbc.spi.TransactionDefinition;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.reactivestreams.Publisher;
import org.springframework.transaction.annotation.Isolation;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.test.StepVerifier;

/** BEGIN goes with the claim, and whatever becomes of it, the claim never stands without the effect. */
class DeferredBeginTest {

    private static final Duration LIMIT = Duration.ofSeconds(30);

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(10);
    private final Wire wire = new Wire(pool);

    @Test
    void theClaimDoesNotWaitForTheAnswerToBegin() {
        wire.beginAnswersWhenAClaimIsSent = true;

        assertThat(run(orders(Order::apply).build(wire), TestDelivery.order("1")))
                .isInstanceOf(Outcome.Applied.class);

        assertThat(wire.unanswered).hasValue(0);
        database.assertAppliedOnce(1);
    }

    @Test
    void aBeginThatFailsOnAConnectionThatLivesOnLeavesNoClaimBehind() {
        IdempotentConsumer<Order> consumer = orders(Order::apply).build(wire);
        run(consumer, TestDelivery.order("first"));
        wire.toFail.set(3);

        List<Outcome> outcomes = run(consumer, TestDelivery.orders("m", 20));

        assertThat(wire.toFail).hasNonPositiveValue();
        assertThat(outcomes).hasSize(20).allMatch(Outcome.Applied.class::isInstance);
        database.assertAppliedOnce(21);
    }

    /** The rollback comes when the statement has passed the gate and BEGIN has not been sent; the connection is given back after it. */
    @Test
    void anAttemptThatIsCutJustBeforeBeginLeavesNoTransactionOpen() {
        AtomicReference<Runnable> beforeBegin = new AtomicReference<>(() -> {});
        CompletableFuture<AttemptConnection> toClose = new CompletableFuture<>();
        AttemptConnection attempt = new AttemptConnection(
                new DelegatingConnection(Objects.requireNonNull(pool.create().block(LIMIT))) {
                    @Override
                    public boolean isAutoCommit() {
                        beforeBegin.getAndSet(() -> {}).run();
                        return super.isAutoCommit();
                    }

                    @Override
                    public Publisher<Void> beginTransaction(TransactionDefinition definition) {
                        Publisher<Void> begin = delegate.beginTransaction(definition);
                        return Mono.fromFuture(toClose)
                                .flatMap(AttemptConnection::close)
                                .then(Mono.from(begin));
                    }
                },
                LIMIT);
        attempt.beginTransaction().block(LIMIT);
        beforeBegin.set(() -> attempt.rollbackTransaction().block(LIMIT));
        toClose.complete(attempt);

        StepVerifier.create(Flux.from(attempt.togetherWithBegin()
                                .createStatement("SELECT 1")
                                .execute())
                        .flatMap(Result::getRowsUpdated))
                .expectError()
                .verify(LIMIT);
        await().untilAsserted(() -> assertThat(database.openTransactions()).isZero());
        assertThat(pool.getMetrics().orElseThrow().acquiredSize()).isZero();
    }

    @Test
    void aClaimThatFindsNoTransactionFailsAndLeavesNothing() {
        Mono<Taken> claim = Mono.usingWhen(
                pool.create(),
                connection -> ClaimTable.processedMessages()
                        .check(connection)
                        .flatMap(table -> table.claimTogetherWithBegin(
                                connection, "loyalty", List.of(new NewClaim("1", null, null)), Duration.ofSeconds(1))),
                Connection::close);

        StepVerifier.create(claim)
                .expectErrorSatisfies(
                        error -> assertThat(SqlStates.stateOf(error)).isEqualTo("22023"))
                .verify(LIMIT);
        assertThat(database.claims()).isZero();
    }

    @Test
    void aBeginThatHangsIsNotTheEffectsFaultHoweverShortItsTimeLimit() {
        IdempotentConsumer<Order> consumer = orders(Order::apply)
                .lockTimeout(Duration.ofMillis(200))
                .timeLimit(Duration.ofMillis(500))
                .controlLimit(Duration.ofSeconds(10))
                .failurePolicy(policy().maxAttempts(1).build())
                .build(wire);
        run(consumer, TestDelivery.order("first"));
        wire.toHang.set(1);

        assertThat(run(consumer, TestDelivery.order("1"))).isInstanceOf(Outcome.Applied.class);
        assertThat(wire.toHang).hasNonPositiveValue();
        database.assertAppliedOnce(2);
    }

    @Test
    void whereEveryTransactionIsDeferrableTheClaimWaitsForBegin() {
        ConnectionPool deferrable =
                database.pool(10, database.configuration().options(Map.of("default_transaction_deferrable", "on")));
        Wire waiting = new Wire(deferrable);
        IdempotentConsumer<Order> consumer = orders(Order::apply).build(waiting);
        run(consumer, TestDelivery.order("first"));
        waiting.toFail.set(3);

        run(consumer, TestDelivery.orders("m", 20));

        assertThat(waiting.toFail).hasNonPositiveValue();
        assertThat(waiting.early).hasValue(0);
        database.assertAppliedOnce(21);
    }

    @Test
    void whoeverClaimsWithStatementsOfTheirOwnHasATransactionToo() {
        Claims own = new Claims() {
            @Override
            public Mono<List<String>> verify(Connection connection, String consumer) {
                return Mono.just(List.of());
            }

            @Override
            public Mono<Claimed> claim(Connection inTransaction, List<Claim> claims, Duration lockTimeout) {
                return Flux.from(inTransaction
                                .createStatement("INSERT INTO processed_messages (consumer, message_key)"
                                        + " VALUES ('own', 'x')")
                                .execute())
                        .concatMap(Result::getRowsUpdated)
                        .then(Mono.just(new Claimed(Set.of(claims.get(0).key()))));
            }
        };
        Outcome outcome = run(
                orders((order, db) -> order.note(db).then(Mono.error(new PermanentFailure("no"))))
                        .claims(own)
                        .build(pool),
                TestDelivery.order("1"));

        assertThat(outcome).isInstanceOf(Outcome.Failed.class);
        assertThat(database.claims()).isZero();
        assertThat(database.effectsOf("1")).isZero();
    }

    @Test
    void theIsolationLevelIsTheOneThatWasChosen() {
        List<String> levels = new CopyOnWriteArrayList<>();
        for (Isolation isolation : List.of(Isolation.DEFAULT, Isolation.REPEATABLE_READ, Isolation.SERIALIZABLE)) {
            run(
                    orders((order, db) -> db.sql("SHOW transaction_isolation")
                                    .map(row -> row.get(0, String.class))
                                    .one()
                                    .doOnNext(levels::add))
                            .isolation(isolation)
                            .build(pool),
                    TestDelivery.order(isolation.name()));
        }
        assertThat(levels).containsExactly("read committed", "repeatable read", "serializable");
    }

    /** Connections whose BEGIN can fail as if it were cancelled, or be answered late. */
    private static final class Wire implements ConnectionFactory {

        final AtomicInteger toFail = new AtomicInteger();
        final AtomicInteger toHang = new AtomicInteger();
        final AtomicInteger unanswered = new AtomicInteger();
        final AtomicInteger early = new AtomicInteger();
        volatile boolean beginAnswersWhenAClaimIsSent;
        private final ConnectionPool pool;

        Wire(ConnectionPool pool) {
            this.pool = pool;
        }

        @Override
        public Mono<Connection> create() {
            return pool.create().map(pooled -> new DelegatingConnection(pooled) {

                private final CompletableFuture<Void> claimSent = new CompletableFuture<>();

                @Override
                public Publisher<Void> beginTransaction(TransactionDefinition definition) {
                    if (toHang.getAndDecrement() > 0) {
                        return Mono.never();
                    }
                    return toFail.getAndDecrement() > 0
                            ? delegate.setTransactionIsolationLevel(IsolationLevel.valueOf("NONSENSE"))
                            : Mono.from(delegate.beginTransaction(definition))
                                    .doOnSubscribe(subscription -> unanswered.incrementAndGet())
                                    .then(
                                            beginAnswersWhenAClaimIsSent
                                                    ? Mono.fromFuture(claimSent, true)
                                                    : Mono.empty())
                                    .doOnSuccess(done -> unanswered.decrementAndGet());
                }

                @Override
                public Statement createStatement(String sql) {
                    return new InterceptedStatement(
                            delegate.createStatement(sql),
                            (execution, several) ->
                                    Flux.<Result>from(execution).doOnSubscribe(subscription -> sent(sql)));
                }

                private void sent(String sql) {
                    if (sql.contains("BEGIN did not succeed")) {
                        early.incrementAndGet();
                    }
                    if (sql.contains("processed_messages")) {
                        claimSent.complete(null);
                    }
                }
            });
        }

        @Override
        public ConnectionFactoryMetadata getMetadata() {
            return pool.getMetadata();
        }
    }
}
