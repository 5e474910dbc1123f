package io.onceflux;

import static io.onceflux.Consumers.failureOf;
import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.policy;
import static io.onceflux.Consumers.run;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Result;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.reactivestreams.Publisher;
import org.springframework.r2dbc.connection.ConnectionFactoryUtils;
import org.springframework.r2dbc.connection.R2dbcTransactionManager;
import org.springframework.transaction.CannotCreateTransactionException;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.reactive.TransactionContext;
import org.springframework.transaction.reactive.TransactionSynchronization;
import org.springframework.transaction.reactive.TransactionSynchronizationManager;
import org.springframework.transaction.reactive.TransactionalOperator;
import org.springframework.transaction.support.DefaultTransactionDefinition;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/** Whatever an effect does with Spring's transaction: it ends as it should, once, and its connection goes back. */
class TransactionEndTest {

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(6);
    private final AtomicInteger attempts = new AtomicInteger();

    private boolean isFirst() {
        return attempts.getAndIncrement() == 0;
    }

    /** Limits that are short enough for a test, and a transaction that leaks would not let its own message pass. */
    private ConsumerBuilder<Order> quick(Effect<Order> effect) {
        return orders(effect)
                .lockTimeout(Duration.ofMillis(200))
                .timeLimit(Duration.ofMillis(600))
                .controlLimit(Duration.ofMillis(300))
                .failurePolicy(policy().conflictTimeout(Duration.ofSeconds(2)).build());
    }

    private void assertAppliedOnce(Outcome outcome) {
        assertThat(outcome).isInstanceOf(Outcome.Applied.class);
        database.assertAppliedOnce(1);
    }

    enum Joining {
        REQUIRED(TransactionDefinition.PROPAGATION_REQUIRED),
        REQUIRES_NEW(TransactionDefinition.PROPAGATION_REQUIRES_NEW),
        NESTED(TransactionDefinition.PROPAGATION_NESTED),
        NOT_SUPPORTED(TransactionDefinition.PROPAGATION_NOT_SUPPORTED);

        private final int propagation;

        Joining(int propagation) {
            this.propagation = propagation;
        }

        TransactionalOperator operator(ConnectionPool pool) {
            return TransactionalOperator.create(
                    new R2dbcTransactionManager(pool), new DefaultTransactionDefinition(propagation));
        }
    }

    private Mono<Void> insertOfItsOwn() {
        return ConnectionFactoryUtils.getConnection(pool)
                .flatMapMany(connection -> Flux.<Result>from(connection
                        .createStatement("UPDATE balances SET points = 0")
                        .execute()))
                .flatMap(Result::getRowsUpdated)
                .then();
    }

    @ParameterizedTest
    @EnumSource
    void anEffectThatIsCutInAnotherTransactionIsRolledBackAndTriedAgain(Joining joining) {
        for (int round = 0; round < 3; round++) {
            attempts.set(0);
            Effect<Order> effect = (order, db) -> order.note(db)
                    .then(Mono.defer(() -> isFirst()
                            ? joining.operator(pool)
                                    .transactional(insertOfItsOwn().then(Mono.<Void>never()))
                            : Mono.empty()));
            assertAppliedOnce(run(quick(effect).build(pool), TestDelivery.order("1")));
            assertThat(attempts).hasValue(2);
            database.assertNothingLeaked();
            database.empty();
        }
    }

    @Test
    void anEffectThatIsCutWhileItWaitsForAConnectionForAnotherTransactionIsRolledBackAndTriedAgain() {
        ConnectionPool small = database.pool(3);
        Effect<Order> effect = (order, db) -> order.note(db).then(Mono.defer(() -> {
            if (!isFirst()) {
                return Mono.empty();
            }
            return Flux.range(0, 2)
                    .flatMap(i -> small.create())
                    .collectList()
                    .flatMap(others -> Joining.REQUIRES_NEW
                            .operator(small)
                            .transactional(Mono.<Void>never())
                            .doFinally(end -> others.forEach(TransactionEndTest::closeLater)));
        }));
        assertAppliedOnce(run(quick(effect).lanes(1).build(small), TestDelivery.order("1")));
        assertThat(attempts).hasValue(2);
        database.assertNothingLeaked();
    }

    private static void closeLater(Connection connection) {
        var closing = Mono.from(connection.close()).subscribe();
        assertThat(closing).isNotNull();
    }

    private static Mono<Void> register(TransactionSynchronization synchronization) {
        return TransactionSynchronizationManager.forCurrentTransaction()
                .doOnNext(manager -> manager.registerSynchronization(synchronization))
                .then();
    }

    /** Spring rolls back for other exceptions, but not for its own. */
    @Test
    void whatFailsBeforeTheCommitLeavesNothingCommitted() {
        Effect<Order> effect = (order, db) -> order.note(db).then(register(new TransactionSynchronization() {
            @Override
            public Mono<Void> beforeCommit(boolean readOnly) {
                return isFirst()
                        ? Mono.error(new CannotCreateTransactionException("the pool of something else is exhausted"))
                        : Mono.empty();
            }
        }));
        assertAppliedOnce(run(quick(effect).build(pool), TestDelivery.order("1")));
        assertThat(attempts).hasValue(2);
        database.assertNothingLeaked();
    }

    @Test
    void whatHangsBeforeTheCommitIsCutAndTheMessageTriedAgain() {
        Effect<Order> effect = (order, db) -> order.note(db).then(register(new TransactionSynchronization() {
            @Override
            public Mono<Void> beforeCommit(boolean readOnly) {
                return isFirst() ? Mono.never() : Mono.empty();
            }
        }));
        assertAppliedOnce(run(quick(effect).build(pool), TestDelivery.order("1")));
        assertThat(attempts).hasValue(2);
        database.assertNothingLeaked();
    }

    /** What was registered has used up almost all of the time, and the server takes longer for the COMMIT than is left. */
    @Test
    void aCommitThatIsUnderWayWhenTheTimeIsOverIsLeftToTheClaim() {
        database.run("""
                CREATE FUNCTION slow_commit() RETURNS trigger LANGUAGE plpgsql AS
                    $$ BEGIN PERFORM pg_sleep(1); RETURN NULL; END $$;
                CREATE CONSTRAINT TRIGGER slow_commit AFTER INSERT ON point_ledger
                    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow_commit();
                """);
        Duration almostAll = Duration.ofMillis(1_050);
        RecordingListener listener = new RecordingListener();
        Effect<Order> effect = (order, db) -> order.note(db).then(register(new TransactionSynchronization() {
            @Override
            public Mono<Void> beforeCommit(boolean readOnly) {
                return isFirst() ? Mono.delay(almostAll).then() : Mono.empty();
            }
        }));
        try {
            Outcome outcome = run(quick(effect).listener(listener).build(pool), TestDelivery.order("1"));
            assertThat(outcome).isInstanceOf(Outcome.Duplicate.class);
            assertThat(listener.unknownCommits).hasSize(1);
            assertThat(attempts).hasValue(1);
            database.assertAppliedOnce(1);
            database.assertNothingLeaked();
        } finally {
            database.run("DROP FUNCTION slow_commit CASCADE");
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void whatHangsOrFailsAfterTheCommitChangesNothing(boolean hangs) {
        Effect<Order> effect = (order, db) -> order.note(db).then(register(new TransactionSynchronization() {
            @Override
            public Mono<Void> afterCommit() {
                attempts.incrementAndGet();
                return hangs ? Mono.never() : Mono.error(new IllegalStateException("too late"));
            }
        }));
        assertAppliedOnce(run(quick(effect).build(pool), TestDelivery.order("1")));
        assertThat(attempts).hasValue(1);
        database.assertNothingLeaked();
    }

    /** The client of one effect, used where Spring would find another transaction's connection for it. */
    @Test
    void anEffectThatRunsInTheContextOfAnotherDoesNotWriteIntoItsTransaction() {
        AtomicReference<TransactionContext> first = new AtomicReference<>();
        AtomicBoolean isCommitting = new AtomicBoolean();
        Sinks.Empty<Void> mayCommit = Sinks.empty();
        Effect<Order> effect = (order, db) -> order.id().equals("1")
                ? Mono.deferContextual(context -> {
                    first.set(context.get(TransactionContext.class));
                    return order.note(db).then(register(new TransactionSynchronization() {
                        @Override
                        public Mono<Void> beforeCommit(boolean readOnly) {
                            isCommitting.set(true);
                            return mayCommit.asMono();
                        }
                    }));
                })
                : order.note(db)
                        .contextWrite(
                                context -> context.put(TransactionContext.class, Objects.requireNonNull(first.get())));
        IdempotentConsumer<Order> consumer =
                quick(effect).controlLimit(Duration.ofSeconds(10)).build(pool);
        CompletableFuture<Outcome> one =
                consumer.process(TestDelivery.order("1")).toFuture();
        await().untilTrue(isCommitting);
        Outcome two = consumer.process(TestDelivery.order("2")).block(Duration.ofSeconds(20));
        assertThat(mayCommit.tryEmitEmpty()).isEqualTo(Sinks.EmitResult.OK);

        assertThat(failureOf(Objects.requireNonNull(two)).reason()).contains("an effect has ended");
        assertThat(one).succeedsWithin(Duration.ofSeconds(10)).isInstanceOf(Outcome.Applied.class);
        database.assertAppliedOnce(1);
        database.assertNothingLeaked();
    }

    /** Of a transaction that an effect has joined, Spring only notes that it is to be rolled back. */
    @Test
    void whatJoinsTheTransactionAndMarksItForRollbackIsNotCommitted() {
        Effect<Order> effect = (order, db) -> order.note(db)
                .then(Joining.REQUIRED
                        .operator(pool)
                        .execute(transaction -> {
                            transaction.setRollbackOnly();
                            return Mono.empty();
                        })
                        .then());
        Outcome outcome = run(quick(effect).build(pool), TestDelivery.order("1"));
        assertThat(failureOf(outcome).reason()).contains("marked it for rollback");
        database.assertAppliedOnce(0);
        database.assertNothingLeaked();
    }

    /** What an effect starts and does not wait for has no part in its Reactor context either. */
    private static Effect<Order> leavingBehind(ConnectionPool pool, Function<Connection, Publisher<Void>> call) {
        return (order, db) -> order.note(db)
                .then(ConnectionFactoryUtils.getConnection(pool)
                        .flatMap(connection -> Mono.<Void>fromFuture(() -> {
                            CompletableFuture<Void> called =
                                    Mono.from(call.apply(connection)).toFuture();
                            return called.exceptionally(refused -> null);
                        })))
                .then(Order.of("second half").note(db));
    }

    @ParameterizedTest
    @ValueSource(strings = {"commit", "rollback", "close", "autoCommit"})
    void workThatHasLeftItsContextCannotEndTheTransactionEither(String call) {
        Function<Connection, Publisher<Void>> calls = connection -> switch (call) {
            case "commit" -> connection.commitTransaction();
            case "rollback" -> connection.rollbackTransaction();
            case "close" -> connection.close();
            default -> connection.setAutoCommit(true);
        };
        Outcome outcome = run(quick(leavingBehind(pool, calls)).build(pool), TestDelivery.order("1"));
        assertThat(outcome).isInstanceOf(Outcome.Applied.class);
        assertThat(database.claims()).isEqualTo(1);
        assertThat(database.effects()).isEqualTo(2);
        database.assertNothingLeaked();
    }
}
