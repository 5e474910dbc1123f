package io.onceflux;

import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.policy;
import static io.onceflux.Consumers.run;
import static io.onceflux.Consumers.start;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.onceflux.Health.Status;
import io.onceflux.micrometer.ConsumerMeters;
import io.onceflux.postgres.ClaimTable;
import io.onceflux.postgres.DeadLetterTable;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.ConnectionFactoryMetadata;
import io.r2dbc.spi.R2dbcNonTransientResourceException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.reactivestreams.Publisher;
import org.springframework.r2dbc.connection.R2dbcTransactionManager;
import org.springframework.transaction.reactive.TransactionalOperator;
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.test.StepVerifier;

/** Health tells what is wrong now: it ends with the trouble, also when no message comes that could show so. */
class HealthTest {

    private static final Duration LIMIT = Duration.ofSeconds(20);

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final Breaker breaker = new Breaker(database.pool(10));
    private final RecordingListener listener = new RecordingListener();
    private final SimpleMeterRegistry registry = new SimpleMeterRegistry();
    private final Disposable.Composite running = Disposables.composite();

    @AfterEach
    void cancel() {
        running.dispose();
        registry.close();
    }

    private ConsumerBuilder<Order> described(Effect<Order> effect) {
        return orders(effect)
                .downAfter(Duration.ofSeconds(1))
                .listener(listener)
                .listener(ConsumerMeters.in(registry));
    }

    private IdempotentConsumer<Order> consumer() {
        return described(Order::apply).build(breaker);
    }

    private CompletableFuture<Intake> subscribe(IdempotentConsumer<Order> consumer, Flux<Delivery<Order>> source) {
        CompletableFuture<Intake> intake = new CompletableFuture<>();
        running.add(Flux.<Delivery<Order>>deferContextual(
                        // Asked for, it has begun; while it is only subscribed to, the start may not be over.
                        context -> source.doOnRequest(asked -> intake.complete(Intake.from(context))))
                .transform(consumer)
                .subscribe());
        return intake;
    }

    private void databaseGoesAway() {
        breaker.away = true;
    }

    private void awaitHeld(IdempotentConsumer<Order> consumer) {
        await().until(() -> listener.held.contains(FailureKind.INFRASTRUCTURE));
        assertThat(consumer.health().troubles())
                .extracting(Health.Trouble::what)
                .contains("database");
        assertThat(held()).isEqualTo(1);
    }

    private void awaitUp(IdempotentConsumer<Order> consumer) {
        await().untilAsserted(() -> assertThat(consumer.health().troubles()).isEmpty());
        assertThat(consumer.health().status()).isEqualTo(Status.UP);
        assertThat(listener.resumed).hasPositiveValue();
        assertThat(held()).isZero();
    }

    private double held() {
        return registry.get("onceflux.held").gauges().stream()
                .mapToDouble(gauge -> gauge.value())
                .sum();
    }

    @Test
    void aDatabaseThatWasAwayAtTheStartIsNoTroubleOnceTheCheckHasPassed() {
        databaseGoesAway();
        IdempotentConsumer<Order> consumer = consumer();
        CompletableFuture<Intake> intake = subscribe(consumer, Flux.never());
        awaitHeld(consumer);
        breaker.away = false;

        assertThat(intake).succeedsWithin(LIMIT);
        awaitUp(consumer);
    }

    @Test
    void anOutageThatASourceHasWaitedForIsOverWhenItIsReady() {
        IdempotentConsumer<Order> consumer = consumer();
        Intake intake = subscribe(consumer, Flux.never()).join();
        databaseGoesAway();
        CompletableFuture<Void> ready = intake.ready().toFuture();
        awaitHeld(consumer);
        breaker.away = false;

        assertThat(ready).succeedsWithin(LIMIT);
        awaitUp(consumer);
    }

    @Test
    void aSourceThatIsCancelledWhileItWaitsLeavesNoTroubleBehind() {
        IdempotentConsumer<Order> consumer = consumer();
        Intake intake = subscribe(consumer, Flux.never()).join();
        databaseGoesAway();
        Disposable waiting = intake.ready().subscribe();
        awaitHeld(consumer);
        waiting.dispose();

        awaitUp(consumer);
    }

    @Test
    void aHeldMessageThatIsLetGoBecauseItsChannelIsLostLeavesNoTroubleBehind() {
        IdempotentConsumer<Order> consumer = consumer();
        run(consumer, TestDelivery.order("before"));
        databaseGoesAway();
        TestDelivery<Order> delivery = TestDelivery.order("held");
        CompletableFuture<List<Outcome>> outcomes = start(consumer, List.of(delivery));
        awaitHeld(consumer);
        delivery.channelLost();

        assertThat(outcomes).succeedsWithin(LIMIT);
        awaitUp(consumer);
    }

    @Test
    void heldMessagesOfAFluxThatIsCancelledLeaveNoTroubleBehind() {
        IdempotentConsumer<Order> consumer =
                described(Order::apply).maxBatch(10).build(breaker);
        run(consumer, TestDelivery.order("before"));
        databaseGoesAway();
        assertThat(subscribe(consumer, Flux.fromIterable(TestDelivery.orders("h", 50))))
                .succeedsWithin(LIMIT);
        awaitHeld(consumer);
        running.dispose();

        awaitUp(consumer);
    }

    @Test
    void aMessageThatIsQuarantinedLeavesNoTroubleBehind() {
        IdempotentConsumer<Order> consumer = described(
                        (order, db) -> Mono.error(new R2dbcNonTransientResourceException("another server", "08006")))
                .failurePolicy(policy().quarantineAfter(3).build())
                .build(breaker);
        TestDelivery<Order> delivery = TestDelivery.order("bad");
        run(consumer, delivery);

        assertThat(delivery.isDeadLettered()).isTrue();
        assertThat(listener.held).isNotEmpty();
        awaitUp(consumer);
    }

    @Test
    void callsThatFailInAnOutageAreNoTroubleWhenNoneHasFailedForLong() {
        IdempotentConsumer<Order> consumer =
                described(Order::apply).processBudget(Duration.ofMillis(200)).build(breaker);
        run(consumer, TestDelivery.order("before"));
        databaseGoesAway();
        assertThat(consumer.process(TestDelivery.order("1")).block(LIMIT)).isInstanceOf(Outcome.Failed.class);
        assertThat(consumer.health().troubles())
                .extracting(Health.Trouble::what)
                .containsExactly("calls");

        awaitUp(consumer);
    }

    /** A service whose every call fails must not look healthy between them. */
    @Test
    void callsThatFailByABrokenSetupAreDownUntilOneIsDone() {
        IdempotentConsumer<Order> consumer = described(Order::apply)
                .claimTable(ClaimTable.named("renamed"))
                .downAfter(LIMIT)
                .processBudget(Duration.ofMillis(200))
                .build(breaker);
        ClaimTable.named("renamed").create(breaker).block(LIMIT);
        assertThat(consumer.process(TestDelivery.order("1")).block(LIMIT)).isInstanceOf(Outcome.Applied.class);
        database.run("ALTER TABLE renamed RENAME TO renamed_away");

        Outcome failed = consumer.process(TestDelivery.order("2")).block(LIMIT);
        assertThat(failed)
                .isInstanceOfSatisfying(
                        Outcome.Failed.class,
                        one -> assertThat(one.failure().kind()).isEqualTo(FailureKind.BROKEN_SETUP));
        assertThat(consumer.health().status()).isEqualTo(Status.DOWN);
        assertThat(consumer.health().troubles()).singleElement().satisfies(calls -> {
            assertThat(calls.what()).isEqualTo("calls");
            assertThat(calls.reason()).contains("renamed");
        });

        database.run("ALTER TABLE renamed_away RENAME TO renamed");
        assertThat(consumer.process(TestDelivery.order("2")).block(LIMIT)).isInstanceOf(Outcome.Applied.class);
        awaitUp(consumer);
        database.run("DROP TABLE renamed");
    }

    @Test
    void aCallerWhoGivesUpLeavesNoTroubleBehind() {
        IdempotentConsumer<Order> consumer = consumer();
        run(consumer, TestDelivery.order("before"));
        databaseGoesAway();
        Disposable call = consumer.process(TestDelivery.order("1")).subscribe();
        awaitHeld(consumer);
        call.dispose();

        awaitUp(consumer);
    }

    @Test
    void aBrokenSetupIsOverWhenTheMessageThatWasHeldForItIsLetGo() {
        IdempotentConsumer<Order> consumer = described((order, db) ->
                        db.sql("INSERT INTO not_yet_there VALUES (1)").then())
                .build(breaker);
        TestDelivery<Order> delivery = TestDelivery.order("held");
        CompletableFuture<List<Outcome>> outcomes = start(consumer, List.of(delivery));
        await().until(() -> consumer.health().status() == Status.DOWN);
        delivery.channelLost();

        assertThat(outcomes).succeedsWithin(LIMIT);
        awaitUp(consumer);
    }

    @Test
    void duplicatesThatCommitDoNotEndABrokenSetup() {
        database.run("CREATE TABLE later (id text)");
        IdempotentConsumer<Order> consumer = described((order, db) -> db.sql("INSERT INTO later VALUES (:id)")
                        .bind("id", order.id())
                        .then())
                .build(breaker);
        run(consumer, TestDelivery.order("before"));
        database.run("DROP TABLE later");
        CompletableFuture<List<Outcome>> outcomes = start(consumer, List.of(TestDelivery.order("held")));
        await().until(() -> consumer.health().status() == Status.DOWN);

        assertThat(run(consumer, TestDelivery.order("before"))).isInstanceOf(Outcome.Duplicate.class);
        assertThat(consumer.health().status()).isEqualTo(Status.DOWN);
        assertThat(listener.resumed).hasValue(0);

        database.run("CREATE TABLE later (id text)");
        assertThat(outcomes).succeedsWithin(LIMIT);
        awaitUp(consumer);
        database.run("DROP TABLE later");
    }

    @Test
    void aDeadLetterThatCannotBeStoredIsNoTroubleOnceItIsLeftToRedelivery() {
        IdempotentConsumer<Order> consumer = described((order, db) ->
                        order.id().equals("bad") ? Mono.error(new PermanentFailure("no")) : order.apply(db))
                .build(breaker);
        TestDelivery<Order> bad =
                TestDelivery.order("bad").answering(Mono.error(new IllegalStateException("no such queue")));
        CompletableFuture<List<Outcome>> outcomes = start(consumer, List.of(bad));
        await().until(() -> listener.settleFailures.size() > 1);
        assertThat(consumer.health().troubles())
                .extracting(Health.Trouble::what)
                .containsExactly("dead letters");
        bad.channelLost();

        assertThat(outcomes).succeedsWithin(LIMIT);
        assertThat(consumer.health().status()).isEqualTo(Status.UP);
        assertThat(listener.unsettled).containsExactly(bad);
    }

    @Test
    void callsAndClaimsThatAreRefusedAreToldAndDown() {
        IdempotentConsumer<Order> consumer =
                described(Order::apply).claimTable(ClaimTable.named("nowhere")).build(breaker);

        StepVerifier.create(consumer.process(TestDelivery.order("1"))).verifyError(InvalidSetupException.class);
        assertThat(listener.refused).hasSize(1);
        assertThat(consumer.health().status()).isEqualTo(Status.DOWN);
        assertThat(consumer.health().troubles()).singleElement().satisfies(trouble -> {
            assertThat(trouble.what()).isEqualTo("start");
            assertThat(trouble.reason()).contains("nowhere");
        });
        StepVerifier.create(TransactionalOperator.create(new R2dbcTransactionManager(breaker))
                        .transactional(consumer.claimInTransaction("2")))
                .verifyError(InvalidSetupException.class);
        assertThat(listener.refused).hasSize(2);
    }

    @Test
    void aFluxThatEndedWithAnErrorOfItsSourceIsDownUntilItIsSubscribedToAgain() {
        AtomicInteger subscriptions = new AtomicInteger();
        IdempotentConsumer<Order> consumer = consumer();
        Flux<Outcome> outcomes = Flux.<Delivery<Order>>defer(() -> subscriptions.getAndIncrement() == 0
                        ? Flux.error(new IllegalStateException("the mapping threw"))
                        : Flux.never())
                .transform(consumer);
        StepVerifier.create(outcomes).verifyErrorMessage("the mapping threw");
        assertThat(listener.failed).singleElement().asString().contains("the mapping threw");
        assertThat(consumer.health().status()).isEqualTo(Status.DOWN);

        assertThat(subscribe(consumer, Flux.never())).succeedsWithin(LIMIT);
        assertThat(consumer.health().troubles())
                .as("another flux does not bring back this one")
                .extracting(Health.Trouble::what)
                .containsExactly("deliveries");
        running.add(outcomes.subscribe());
        assertThat(consumer.health().status()).isEqualTo(Status.UP);
    }

    @Test
    void aReplayIsNoStartOfAFlux() {
        DeadLetterTable table = DeadLetterTable.deadLetters();
        table.create(breaker).block(LIMIT);
        database.run(
                "INSERT INTO dead_letters (consumer, message_key, message_id, origin, kind, reason, attempts, failed_at,"
                        + " header_names, header_values, body) SELECT 'loyalty', n::text, n::text, 'q', 'PERMANENT', 'no', 1, now(),"
                        + " '{}', '{}', convert_to(n::text, 'UTF8') FROM generate_series(1, 3) AS n");
        IdempotentConsumer<Order> consumer =
                described(Order::apply).deadLetterTable(table).build(breaker);

        StepVerifier.create(consumer.deadLetters(body -> Order.of(new String(body, StandardCharsets.UTF_8)))
                        .replay(letter -> true, 100))
                .expectNextCount(3)
                .verifyComplete();
        assertThat(listener.starts).hasValue(0);
        database.assertAppliedOnce(3);
    }

    @Test
    void sourcesOfOneNameInTwoFluxesAreKeptApart() {
        IdempotentConsumer<Order> consumer = consumer();
        ConsumerListener one = subscribe(consumer, Flux.never()).join().listener();
        ConsumerListener other = subscribe(consumer, Flux.never()).join().listener();
        one.onSourceLost("queue 'orders'", "gone", Duration.ofSeconds(1));
        other.onSourceLost("queue 'orders'", "gone", Duration.ofSeconds(1));
        other.onSourceConsuming("queue 'orders'");
        other.onSourceClosed("queue 'orders'");
        assertThat(consumer.health().troubles())
                .extracting(Health.Trouble::what)
                .containsExactly("queue 'orders'");

        one.onSourceConsuming("queue 'orders'");
        assertThat(consumer.health().status()).isEqualTo(Status.UP);
        assertThat(listener.lost).hasSize(2);
    }

    @Test
    void untilItsSetupIsLookedAtAConsumerIsStarting() {
        ConnectionFactory silent = new ConnectionFactory() {
            @Override
            public Publisher<? extends Connection> create() {
                return Mono.never();
            }

            @Override
            public ConnectionFactoryMetadata getMetadata() {
                return breaker.getMetadata();
            }
        };
        IdempotentConsumer<Order> consumer =
                described(Order::apply).downAfter(LIMIT).controlLimit(LIMIT).build(silent);
        assertThat(consumer.health().status()).isEqualTo(Status.UP);
        running.add(Flux.<Delivery<Order>>never().transform(consumer).subscribe());

        assertThat(consumer.health().status()).isEqualTo(Status.STARTING);
        assertThat(consumer.health().troubles()).singleElement().satisfies(start -> {
            assertThat(start.what()).isEqualTo("start");
            assertThat(start.reason()).isEqualTo("the set-up is being looked at");
        });
        running.dispose();
        assertThat(consumer.health().status()).isEqualTo(Status.UP);
    }

    @Test
    void untilItsSourceIsAcceptedAConsumerIsStartingAndInTheEndDown() {
        IdempotentConsumer<Order> consumer =
                described(Order::apply).downAfter(Duration.ofSeconds(2)).build(breaker);
        CompletableFuture<Intake> intake = new CompletableFuture<>();
        running.add(Flux.<Delivery<Order>>deferContextual(context -> {
                    Intake.from(context).listener().onSourceOpening("queue 'orders'");
                    intake.complete(Intake.from(context));
                    return Flux.never();
                })
                .transform(consumer)
                .subscribe());
        ConsumerListener told = intake.join().listener();
        await().untilAsserted(() -> assertThat(consumer.health().troubles())
                .singleElement()
                .satisfies(opening -> assertThat(opening.what()).isEqualTo("queue 'orders'")));
        await().until(() -> consumer.health().status() == Status.DOWN);
        told.onSourceConsuming("queue 'orders'");

        assertThat(consumer.health()).isEqualTo(new Health(Status.UP, List.of()));
    }

    @Test
    void aSourceThatIsLostBeforeItWasAcceptedIsATrouble() {
        IdempotentConsumer<Order> consumer =
                described(Order::apply).downAfter(LIMIT).build(breaker);
        Intake intake = subscribe(consumer, Flux.never()).join();
        intake.listener().onSourceOpening("queue");
        await().until(() -> consumer.health().status() == Status.STARTING);
        intake.listener().onSourceLost("queue", "refused", Duration.ofMillis(1));

        assertThat(consumer.health().status()).isEqualTo(Status.DEGRADED);
        assertThat(consumer.health().troubles())
                .singleElement()
                .satisfies(lost -> assertThat(lost.reason()).isEqualTo("refused"));
    }
}
