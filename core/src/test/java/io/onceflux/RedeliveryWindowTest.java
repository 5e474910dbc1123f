package io.onceflux;

import static io.onceflux.Consumers.batches;
import static io.onceflux.Consumers.failureOf;
import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.run;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.onceflux.postgres.ClaimTable;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.spi.Connection;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.r2dbc.connection.R2dbcTransactionManager;
import org.springframework.transaction.reactive.TransactionalOperator;
import reactor.core.publisher.Mono;

/** What is so old that its claim may be gone is quarantined, and not run. */
class RedeliveryWindowTest {

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(12);
    private final Instant now = Instant.now();
    private final Map<String, Instant> sent =
            Map.of("new", now, "old", now.minus(Duration.ofDays(8)), "in time", now.minus(Duration.ofDays(6)));

    private ConsumerBuilder<Order> within(ConsumerBuilder<Order> consumer) {
        return consumer.redeliveryWindow(Duration.ofDays(7)).sentAt(order -> sent.get(order.id()));
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 64})
    void beyondTheWindowAMessageIsNotRun(int maxBatch) {
        Plug plug = new Plug();
        List<TestDelivery<Order>> deliveries = plug.before(
                List.of(TestDelivery.order("new"), TestDelivery.order("old"), TestDelivery.order("in time")));
        List<Outcome> outcomes = plug.run(
                within(batches(maxBatch, plug.then(Order::apply)))
                        .sentAt(order -> sent.getOrDefault(order.id(), now))
                        .build(pool),
                deliveries);

        assertThat(outcomes)
                .filteredOn(Outcome.Failed.class::isInstance)
                .singleElement()
                .satisfies(failed -> {
                    assertThat(Objects.requireNonNull(failed.key()).id()).isEqualTo("old");
                    assertThat(failureOf(failed).reason()).contains("longer ago than the redelivery window of PT168H");
                    assertThat(failureOf(failed).kind()).isEqualTo(FailureKind.PERMANENT);
                });
        assertThat(deliveries.get(2).isDeadLettered()).isTrue();
        database.assertAppliedOnce(3);
    }

    /** O2: the claim is gone when the message comes again. */
    @Test
    void aRedeliveryAfterItsClaimWasRemovedIsNotAppliedAgain() {
        Retention retention = Retention.of(ClaimTable.processedMessages(), Duration.ofDays(8));
        IdempotentConsumer<Order> consumer =
                within(orders(Order::apply)).retention(retention).build(pool);
        TestDelivery<Order> again = TestDelivery.order("old");
        database.run("INSERT INTO point_ledger VALUES ('old', 'c-old', 10)");
        database.run("INSERT INTO processed_messages VALUES ('loyalty', 'old', now() - interval '8 days 1 second')");
        retention.run(pool).then().block(Duration.ofSeconds(10));
        assertThat(database.claims()).isZero();

        assertThat(run(consumer, again)).isInstanceOf(Outcome.Failed.class);
        assertThat(again.isDeadLettered()).isTrue();
        assertThat(database.effectsOf("old")).isEqualTo(1);
    }

    @Test
    void aTimeThatIsYetToComeIsNotTrusted() {
        IdempotentConsumer<Order> consumer = orders(Order::apply)
                .redeliveryWindow(Duration.ofDays(7))
                .sentAt(order -> now.plus(Duration.ofMinutes(order.points())))
                .build(pool);

        assertThat(run(consumer, TestDelivery.of(new Order("clocks", "c", 4)))).isInstanceOf(Outcome.Applied.class);
        assertThat(failureOf(run(consumer, TestDelivery.of(new Order("ahead", "c", 10))))
                        .reason())
                .contains("yet to come");
    }

    @Test
    void manyThatAreTooOldAreWarnedOf() {
        RecordingListener told = new RecordingListener();
        run(
                orders(Order::apply)
                        .redeliveryWindow(Duration.ofDays(7))
                        .sentAt(order -> now.minus(Duration.ofDays(30)))
                        .listener(told)
                        .build(pool),
                TestDelivery.orders("m", 150));

        assertThat(told.warnings).anyMatch(warning -> warning.startsWith("100 messages in a row were older than"));
    }

    /** In the order of a log a message that is refused would pass for all before it. */
    @Test
    void claimsThatFollowTheSourceKnowNoAge() {
        Claims places = new Claims() {
            @Override
            public boolean followSource() {
                return true;
            }

            @Override
            public Mono<List<String>> verify(Connection connection, String consumer) {
                return Mono.just(List.of());
            }

            @Override
            public Mono<Claimed> claim(Connection inTransaction, List<Claim> claims, Duration lockTimeout) {
                return Mono.just(new Claimed(Set.of()));
            }
        };
        assertThatThrownBy(() -> within(orders(Order::apply)).claims(places).build(pool))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("sentAt(...)");
        assertThatThrownBy(() -> orders(Order::apply)
                        .claims(places)
                        .recentKeys(RecentKeys.of(100, Duration.ofMinutes(1)))
                        .build(pool))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("recentKeys would not hear of it");
    }

    @Test
    void aMessageWithoutATimeIsADeadLetter() {
        TestDelivery<Order> delivery = TestDelivery.order("unknown");
        assertThat(failureOf(run(within(orders(Order::apply)).build(pool), delivery))
                        .reason())
                .isEqualTo("sentAt returned null for the message");
        assertThat(delivery.isDeadLettered()).isTrue();
    }

    @Test
    void aTimeWithoutAWindowIsRefused() {
        assertThatThrownBy(() -> orders(Order::apply).sentAt(order -> now).build(pool))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("no redeliveryWindow");
    }

    @Test
    void aCallerWhoOwnsATransactionClaimsNothingBeyondTheWindowEither() {
        TransactionalOperator callers = TransactionalOperator.create(new R2dbcTransactionManager(pool));
        IdempotentConsumer<Order> consumer = within(orders(Order::apply)).build(pool);

        assertThat(callers.transactional(consumer.claimInTransaction("1", now)).block())
                .isTrue();
        for (Instant time : List.of(now.minus(Duration.ofDays(8)), now.plus(Duration.ofMinutes(10)))) {
            assertThatThrownBy(() -> callers.transactional(consumer.claimInTransaction("2", time))
                            .block())
                    .isInstanceOf(PermanentFailure.class);
        }
        assertThatThrownBy(() ->
                        callers.transactional(consumer.claimInTransaction("2")).block())
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("use claimInTransaction(messageId, time)");
    }
}
