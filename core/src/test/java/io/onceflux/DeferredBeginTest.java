package io.onceflux;

import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.run;
import static org.assertj.core.api.Assertions.assertThat;

import io.onceflux.postgres.ClaimTable;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.ConnectionFactoryMetadata;
import io.r2dbc.spi.Result;
import io.r2dbc.spi.Statement;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.transaction.annotation.Isolation;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** BEGIN goes with the claim, and whatever becomes of it, the claim never stands without the effect. */
class DeferredBeginTest {

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(10);
    private final Wire wire = new Wire(pool);

    @Test
    void theClaimIsSentBeforeBeginIsAnswered() {
        assertThat(run(orders(Order::apply).build(wire), TestDelivery.order("1")))
                .isInstanceOf(Outcome.Applied.class);

        assertThat(wire.seen).containsSubsequence("send BEGIN", "send claim", "answer BEGIN", "answer claim");
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

    @Test
    void aClaimThatIsSentBehindABeginThatFailedClaimsNothing() {
        Set<String> fresh = Mono.usingWhen(
                        pool.create(),
                        connection -> ClaimTable.processedMessages()
                                .check(connection)
                                .flatMap(table -> table.claimTogetherWithBegin(
                                        connection, "loyalty", List.of("1"), Duration.ofSeconds(1))),
                        Connection::close)
                .block(Duration.ofSeconds(30));

        assertThat(fresh).isEmpty();
        assertThat(database.claims()).isZero();
    }

    @Test
    void whoeverClaimsWithStatementsOfTheirOwnHasATransactionToo() {
        Claims own = new Claims() {
            @Override
            public Mono<List<String>> verify(Connection connection, String consumer) {
                return Mono.just(List.of());
            }

            @Override
            public Mono<Set<MessageKey>> claim(Connection inTransaction, List<MessageKey> keys, Duration lockTimeout) {
                return Flux.from(inTransaction
                                .createStatement("INSERT INTO processed_messages (consumer, message_key)"
                                        + " VALUES ('own', 'x')")
                                .execute())
                        .concatMap(Result::getRowsUpdated)
                        .then(Mono.just(Set.copyOf(keys)));
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

    /** Connections whose statements are noted as they are sent and answered, and whose BEGIN can fail as if it were cancelled. */
    private static final class Wire implements ConnectionFactory {

        final List<String> seen = new CopyOnWriteArrayList<>();
        final AtomicInteger toFail = new AtomicInteger();
        private final ConnectionPool pool;

        Wire(ConnectionPool pool) {
            this.pool = pool;
        }

        @Override
        public Mono<Connection> create() {
            return pool.create().map(pooled -> new DelegatingConnection(pooled) {
                @Override
                public Statement createStatement(String sql) {
                    boolean begin = sql.startsWith("BEGIN");
                    boolean fails = begin && toFail.getAndDecrement() > 0;
                    String name = begin ? "BEGIN" : sql.contains("processed_messages") ? "claim" : "another";
                    return new InterceptedStatement(
                            delegate.createStatement(fails ? "SELECT 1 / 0" : sql),
                            execution -> Flux.<Result>from(execution)
                                    .doOnSubscribe(subscription -> seen.add("send " + name))
                                    .doOnComplete(() -> seen.add("answer " + name)));
                }
            });
        }

        @Override
        public ConnectionFactoryMetadata getMetadata() {
            return pool.getMetadata();
        }
    }
}
