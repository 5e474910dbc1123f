package io.onceflux;

import static io.onceflux.Consumers.failureOf;
import static io.onceflux.Consumers.loyalty;
import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.run;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.r2dbc.connection.R2dbcTransactionManager;
import org.springframework.transaction.reactive.TransactionalOperator;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.test.StepVerifier;

/** What a source and a caller are told while the database cannot be worked with. */
class ReadinessTest {

    private static final Duration LIMIT = Duration.ofSeconds(30);

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();

    @Test
    void aSourceWaitsUntilTheClaimTableIsBackAndTheAlarmIsThatOfABrokenSetup() {
        RecordingListener listener = new RecordingListener();
        IdempotentConsumer<Order> consumer =
                orders(Order::apply).listener(listener).build(database.pool(10));
        assertThat(run(consumer, TestDelivery.order("first"))).isInstanceOf(Outcome.Applied.class);
        database.run("ALTER TABLE processed_messages RENAME TO elsewhere");
        TestDelivery<Order> delivery = TestDelivery.order("1");
        var outcomes = Mono.deferContextual(context -> Intake.from(context).ready())
                .thenReturn((Delivery<Order>) delivery)
                .flux()
                .transform(consumer)
                .collectList()
                .toFuture();

        await().until(() -> listener.held.contains(FailureKind.BROKEN_SETUP));
        assertThat(outcomes).isNotDone();
        database.run("ALTER TABLE elsewhere RENAME TO processed_messages");

        assertThat(outcomes).succeedsWithin(LIMIT);
        assertThat(delivery.isAcknowledged()).isTrue();
    }

    @Test
    void aCallerWaitsForTheStartUpCheckNoLongerThanItsBudget() {
        TestDelivery<Order> delivery = TestDelivery.order("2");
        RecordingListener listener = new RecordingListener();
        IdempotentConsumer<Order> consumer = orders(Order::apply)
                .processBudget(Duration.ofMillis(300))
                .listener(listener)
                .build(new PostgresqlConnectionFactory(
                        database.configuration().port(1).build()));

        Outcome outcome = Objects.requireNonNull(consumer.process(delivery).block(LIMIT));

        assertThat(failureOf(outcome).kind()).isEqualTo(FailureKind.INFRASTRUCTURE);
        assertThat(failureOf(outcome).reason()).contains("start-up check within 300 ms");
        assertThat(delivery.settlements()).isEmpty();
        assertThat(listener.outcomes).containsExactly(outcome);
    }

    @Test
    void aConsumerThatHasBeenStoppedClaimsNothing() {
        IdempotentConsumer<Order> consumer = loyalty(database.pool(10));
        consumer.stop().block(LIMIT);
        TransactionalOperator callers = TransactionalOperator.create(new R2dbcTransactionManager(database.direct()));

        StepVerifier.create(callers.transactional(consumer.claimInTransaction("3")))
                .verifyErrorMessage("the consumer loyalty has been stopped");
        StepVerifier.create(consumer.process(TestDelivery.order("3")))
                .verifyErrorMessage("the consumer loyalty has been stopped");
        StepVerifier.create(Flux.<Delivery<Order>>just(TestDelivery.order("3")).transform(consumer))
                .verifyComplete();
        assertThat(database.count("SELECT count(*) FROM processed_messages WHERE message_key = '3'"))
                .isZero();
    }

    @Test
    void callersWhoAllHoldAConnectionAndClaimForTheFirstTimeDoNotWaitForEachOther() {
        ConnectionPool five = database.pool(5);
        IdempotentConsumer<Order> consumer = orders(Order::apply).build(five);
        TransactionalOperator callers = TransactionalOperator.create(new R2dbcTransactionManager(five));
        CountDownLatch all = new CountDownLatch(5);

        List<Boolean> fresh = Objects.requireNonNull(Flux.range(0, 5)
                .flatMap(n -> callers.transactional(Mono.<Void>fromRunnable(all::countDown)
                        .then(Mono.defer(() -> Mono.delay(Duration.ofMillis(5))
                                .repeat(() -> all.getCount() > 0)
                                .then()))
                        .then(consumer.claimInTransaction("together-" + n))))
                .collectList()
                .block(LIMIT));

        assertThat(fresh).hasSize(5).containsOnly(true);
    }

    @Test
    void aConsumerThatIsStoppedDuringItsStartUpCheckSubscribesToNothing() {
        AtomicInteger subscribed = new AtomicInteger();
        IdempotentConsumer<Order> consumer = orders(Order::apply)
                .build(new PostgresqlConnectionFactory(
                        database.configuration().port(1).build()));
        var outcomes = Flux.<Delivery<Order>>never()
                .doOnSubscribe(subscription -> subscribed.incrementAndGet())
                .transform(consumer)
                .collectList()
                .toFuture();
        consumer.stop().block(LIMIT);

        assertThat(outcomes).succeedsWithin(LIMIT);
        assertThat(subscribed).hasValue(0);
    }
}
