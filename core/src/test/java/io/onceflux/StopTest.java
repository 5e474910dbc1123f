package io.onceflux;

import static io.onceflux.Consumers.flux;
import static io.onceflux.Consumers.loyalty;
import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.run;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.r2dbc.pool.ConnectionPool;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;
import reactor.core.scheduler.Schedulers;
import reactor.test.StepVerifier;

class StopTest {

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(10);

    /** From a source that does not end by itself. */
    private static CompletableFuture<List<Outcome>> startEndless(
            IdempotentConsumer<Order> consumer, List<TestDelivery<Order>> deliveries) {
        return flux(deliveries)
                .concatWith(Flux.never())
                .transform(consumer)
                .collectList()
                .toFuture();
    }

    @Test
    void whatIsUnderWayCommitsAndIsAcknowledgedWhatIsQueuedIsRequeuedAndTheFluxCompletes() {
        AtomicInteger started = new AtomicInteger();
        Sinks.Empty<Void> finish = Sinks.empty();
        RecordingListener listener = new RecordingListener();
        IdempotentConsumer<Order> consumer = orders((order, db) -> order.note(db)
                        .then(Mono.fromRunnable(started::incrementAndGet))
                        .then(finish.asMono()))
                .listener(listener)
                .maxInFlight(64)
                .build(pool);
        List<TestDelivery<Order>> deliveries = TestDelivery.orders("s", 40);
        CompletableFuture<List<Outcome>> outcomes = startEndless(consumer, deliveries);
        await().until(() -> started.get() == 4);

        CompletableFuture<Void> stopped = consumer.stop().toFuture();
        assertThat(outcomes).isNotDone();
        assertThat(stopped).isNotDone();
        finish.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);

        await().until(stopped::isDone);
        assertThat(outcomes).isCompletedWithValueMatching(list -> list.size() == 4);
        assertThat(deliveries).filteredOn(TestDelivery::isAcknowledged).hasSize(4);
        assertThat(deliveries).filteredOn(TestDelivery::isRequeued).hasSize(36);
        assertThat(listener.dropped).hasSize(36);
        database.assertAppliedOnce(4);
    }

    @Test
    void theLimitCutsAndRollsBackAndWhatCouldNotFinishIsCounted() {
        RecordingListener listener = new RecordingListener();
        AtomicInteger started = new AtomicInteger();
        IdempotentConsumer<Order> consumer = orders((order, db) -> order.note(db)
                        .then(Mono.fromRunnable(started::incrementAndGet))
                        .then(Mono.never()))
                .listener(listener)
                .build(pool);
        List<TestDelivery<Order>> deliveries = TestDelivery.orders("s", 40);
        CompletableFuture<List<Outcome>> outcomes = startEndless(consumer, deliveries);
        await().until(() -> started.get() == 4);

        StepVerifier.create(consumer.stop(Duration.ofMillis(300)))
                .expectComplete()
                .verify(Duration.ofSeconds(10));

        assertThat(outcomes).isCompletedWithValue(List.of());
        assertThat(deliveries).allMatch(delivery -> delivery.settlements().isEmpty());
        assertThat(listener.dropped).hasSameElementsAs(deliveries).doesNotHaveDuplicates();
        database.assertNothingLeaked();
        database.assertAppliedOnce(0);
    }

    @Test
    void cancellingTheFluxCountsWhatItLeavesToRedelivery() {
        RecordingListener listener = new RecordingListener();
        AtomicInteger started = new AtomicInteger();
        IdempotentConsumer<Order> consumer = orders((order, db) -> order.note(db)
                        .then(Mono.fromRunnable(started::incrementAndGet))
                        .then(order.id().equals("s7") ? Mono.empty() : Mono.never()))
                .listener(listener)
                .build(pool);
        List<TestDelivery<Order>> deliveries = TestDelivery.orders("s", 40);
        deliveries.get(7).answering(Mono.never());
        Disposable running =
                flux(deliveries).concatWith(Flux.never()).transform(consumer).subscribe();
        await().until(() -> started.get() == 4);

        running.dispose();

        await().untilAsserted(() ->
                assertThat(listener.dropped.size() + listener.outcomes.size()).isEqualTo(40));
        assertThat(listener.dropped).doesNotHaveDuplicates();
        assertThat(listener.settleFailures).hasSameSizeAs(listener.outcomes);
        database.assertNothingLeaked();
    }

    @Test
    void theLimitCutsADirectCallToo() {
        IdempotentConsumer<Order> consumer =
                orders((order, db) -> order.note(db).then(Mono.never())).build(pool);
        CompletableFuture<Outcome> answer =
                consumer.process(TestDelivery.order("1")).toFuture();
        await().until(() -> database.openTransactions() == 1);

        StepVerifier.create(consumer.stop(Duration.ofMillis(300)))
                .expectComplete()
                .verify(Duration.ofSeconds(10));

        assertThat(answer).isCompletedExceptionally();
        database.assertAppliedOnce(0);
    }

    @Test
    void messagesThatAreHeldAreLetGo() {
        RecordingListener listener = new RecordingListener();
        IdempotentConsumer<Order> consumer = orders((order, db) ->
                        db.sql("INSERT INTO not_yet_there VALUES (1)").then())
                .failurePolicy(FailurePolicy.builder()
                        .backoff(Duration.ofMinutes(1), Duration.ofMinutes(1))
                        .build())
                .listener(listener)
                .build(pool);
        List<TestDelivery<Order>> deliveries = TestDelivery.orders("h", 20);
        CompletableFuture<List<Outcome>> outcomes = startEndless(consumer, deliveries);
        await().until(() -> listener.retries.size() == 4);
        assertThat(listener.held).containsExactly(FailureKind.BROKEN_SETUP);

        consumer.stop().block(Duration.ofSeconds(5));

        assertThat(outcomes).isCompletedWithValue(List.of());
        assertThat(deliveries).allMatch(TestDelivery::isRequeued);
        database.assertAppliedOnce(0);
    }

    @Test
    void aConsumerThatIsIdleStopsAtOnceAndTakesNothingMore() {
        IdempotentConsumer<Order> consumer = loyalty(pool);
        CompletableFuture<List<Outcome>> outcomes = startEndless(consumer, TestDelivery.orders("i", 3));
        await().untilAsserted(() -> assertThat(database.effects()).isEqualTo(3));

        consumer.stop().block(Duration.ofSeconds(5));

        assertThat(outcomes).isCompletedWithValueMatching(list -> list.size() == 3);
        TestDelivery<Order> late = TestDelivery.order("late");
        assertThat(run(consumer, List.of(late))).isEmpty();
        assertThat(late.settlements()).isEmpty();
        StepVerifier.create(consumer.process(late))
                .expectErrorMessage("the consumer loyalty has been stopped")
                .verify();
        database.assertAppliedOnce(3);
    }

    @Test
    void stoppingMayBeAskedForManyTimesAtOnce() {
        for (int round = 0; round < 50; round++) {
            IdempotentConsumer<Order> consumer = loyalty(pool);
            Flux.range(0, 8)
                    .flatMap(n -> consumer.stop().subscribeOn(Schedulers.parallel()))
                    .then()
                    .block(Duration.ofSeconds(5));
            consumer.stop().block(Duration.ofSeconds(5));
        }
    }

    @Test
    void stoppingIsLazy() {
        IdempotentConsumer<Order> consumer = loyalty(pool);
        Mono<Void> unused = consumer.stop();
        assertThat(unused).isNotNull();
        assertThat(run(consumer, TestDelivery.order("1"))).isInstanceOf(Outcome.Applied.class);
    }

    @Test
    void aSourceIsToldInItsContextWhatItMayKnowAndWhenToStop() {
        CompletableFuture<Intake> told = new CompletableFuture<>();
        Flux<Delivery<Order>> source = Flux.deferContextual(context -> {
            Intake intake = Intake.from(context);
            told.complete(intake);
            return Flux.<Delivery<Order>>never().takeUntilOther(intake.stopRequested());
        });
        IdempotentConsumer<Order> consumer = orders(Order::apply).build(pool);
        CompletableFuture<List<Outcome>> outcomes =
                source.transform(consumer).collectList().toFuture();
        Intake intake = told.orTimeout(10, TimeUnit.SECONDS).join();

        assertThat(List.of(intake.consumer(), intake.lanes(), intake.maxInFlight()))
                .isEqualTo(List.of("loyalty", 4, 256));
        intake.ready().block(Duration.ofSeconds(5));
        consumer.stop().block(Duration.ofSeconds(5));
        assertThat(outcomes).isCompletedWithValue(List.of());
    }

    @Test
    void aSourceThatHasToTakeLeaveOfItsBrokerIsWaitedFor() {
        CompletableFuture<Runnable> opened = new CompletableFuture<>();
        Flux<Delivery<Order>> source = Flux.deferContextual(context -> {
            opened.complete(Intake.from(context).awaitClose().get());
            return Flux.never();
        });
        IdempotentConsumer<Order> consumer = orders(Order::apply).build(pool);
        CompletableFuture<List<Outcome>> outcomes =
                source.transform(consumer).collectList().toFuture();
        Runnable closed = opened.orTimeout(10, TimeUnit.SECONDS).join();

        CompletableFuture<Void> stopped = consumer.stop().toFuture();
        await().until(outcomes::isDone);
        assertThat(stopped).isNotDone();
        closed.run();
        closed.run(); // Counts once.

        assertThat(stopped).succeedsWithin(Duration.ofSeconds(5));
    }
}
