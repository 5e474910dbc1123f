package io.onceflux;

import static io.onceflux.Consumers.failureOf;
import static io.onceflux.Consumers.loyalty;
import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.policy;
import static io.onceflux.Consumers.run;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.r2dbc.pool.ConnectionPool;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;
import reactor.test.StepVerifier;

class ProcessesOnceTest {

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(20);

    @Test
    void aMessageIsAppliedAndItsRedeliveryIsADuplicateAndBothAreAcknowledged() {
        TestDelivery<Order> first = TestDelivery.order("1");
        TestDelivery<Order> again = TestDelivery.order("1");

        assertThat(run(loyalty(pool), first)).isInstanceOf(Outcome.Applied.class);
        assertThat(run(loyalty(pool), again)).isInstanceOf(Outcome.Duplicate.class);

        assertThat(first.isAcknowledged()).isTrue();
        assertThat(again.isAcknowledged()).isTrue();
        database.assertAppliedOnce(1);
        assertThat(database.count("SELECT points FROM balances")).isEqualTo(10);
    }

    @Test
    void messagesOfWhichEveryThirdComesTwiceAreAppliedOnceEach() {
        List<TestDelivery<Order>> deliveries = new ArrayList<>(TestDelivery.orders("m", 300));
        for (int i = 0; i < 300; i += 3) {
            deliveries.add(i, TestDelivery.order("m" + i));
        }
        List<Outcome> outcomes = run(loyalty(pool), deliveries);

        assertThat(outcomes).hasSameSizeAs(deliveries);
        assertThat(outcomes).filteredOn(Outcome.Duplicate.class::isInstance).hasSize(100);
        assertThat(deliveries).allMatch(TestDelivery::isAcknowledged);
        database.assertAppliedOnce(300);
    }

    @Test
    void ofEightCopiesAtOnceOnEightConnectionsOneIsAppliedAndSevenAreDuplicates() {
        for (int round = 0; round < 20; round++) {
            String id = "copy-" + round;
            List<Outcome> outcomes = Flux.range(0, 8)
                    .map(n -> loyalty(pool))
                    .flatMap(instance -> instance.process(TestDelivery.order(id)), 8)
                    .collectList()
                    .block();

            assertThat(outcomes).filteredOn(Outcome.Applied.class::isInstance).hasSize(1);
            assertThat(outcomes).filteredOn(Outcome.Duplicate.class::isInstance).hasSize(7);
        }
        database.assertAppliedOnce(20);
    }

    @Test
    void aWaitingDuplicateTakesOverWhenTheFirstRollsBack() {
        Sinks.Empty<Void> failFirst = Sinks.empty();
        IdempotentConsumer<Order> first = orders((order, db) -> order.note(db).then(failFirst.asMono()))
                .failurePolicy(policy().maxAttempts(1).build())
                .build(pool);
        Mono<Outcome> firstOutcome = first.process(TestDelivery.order("1")).cache();
        assertUnanswered(firstOutcome);
        Mono<Outcome> secondOutcome =
                loyalty(pool).process(TestDelivery.order("1")).cache();
        assertUnanswered(secondOutcome);
        assertThat(waitingForALock()).isEqualTo(1);

        failFirst.emitError(new IllegalStateException("the first one fails"), Sinks.EmitFailureHandler.FAIL_FAST);

        assertThat(firstOutcome.block()).isInstanceOf(Outcome.Failed.class);
        assertThat(secondOutcome.block()).isInstanceOf(Outcome.Applied.class);
        database.assertAppliedOnce(1);
    }

    @Test
    void aWaitingDuplicateIsADuplicateWhenTheFirstCommits() {
        Sinks.Empty<Void> finishFirst = Sinks.empty();
        CompletableFuture<Outcome> first = orders((order, db) -> order.note(db).then(finishFirst.asMono()))
                .build(pool)
                .process(TestDelivery.order("1"))
                .toFuture();
        await().untilAsserted(() -> assertThat(database.openTransactions()).isEqualTo(1));
        CompletableFuture<Outcome> second =
                loyalty(pool).process(TestDelivery.order("1")).toFuture();
        await().untilAsserted(() -> assertThat(waitingForALock()).isEqualTo(1));

        finishFirst.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);

        assertThat(first.join()).isInstanceOf(Outcome.Applied.class);
        assertThat(second.join()).isInstanceOf(Outcome.Duplicate.class);
        database.assertAppliedOnce(1);
    }

    @Test
    void anEffectThatThrowsAfterAWriteLeavesNothing() {
        TestDelivery<Order> delivery = TestDelivery.order("1");
        Outcome outcome = run(
                orders((order, db) -> order.apply(db).then(Mono.error(new IllegalStateException("too late"))))
                        .build(pool),
                delivery);

        assertThat(failureOf(outcome).kind()).isEqualTo(FailureKind.EFFECT);
        assertThat(failureOf(outcome).attempts()).isEqualTo(3);
        assertThat(failureOf(outcome).reason()).contains("too late");
        assertThat(delivery.isDeadLettered()).isTrue();
        database.assertAppliedOnce(0);
        assertThat(database.count("SELECT count(*) FROM balances")).isZero();
    }

    @Test
    void aRolledBackClaimDoesNotBlockTheRetryNorTheReplayedDeadLetter() {
        AtomicInteger calls = new AtomicInteger();
        IdempotentConsumer<Order> consumer = orders((order, db) -> order.apply(db)
                        .then(
                                calls.incrementAndGet() % 3 == 0
                                        ? Mono.empty()
                                        : Mono.error(new IllegalStateException())))
                .build(pool);
        assertThat(run(consumer, TestDelivery.order("twice"))).isInstanceOf(Outcome.Applied.class);
        assertThat(calls).hasValue(3);
        database.assertAppliedOnce(1);

        IdempotentConsumer<Order> failing = orders(
                        (order, db) -> order.apply(db).then(Mono.error(new IllegalStateException())))
                .build(pool);
        assertThat(run(failing, TestDelivery.order("replayed"))).isInstanceOf(Outcome.Failed.class);
        assertThat(run(loyalty(pool), TestDelivery.order("replayed"))).isInstanceOf(Outcome.Applied.class);
        database.assertAppliedOnce(2);
    }

    @Test
    void nothingIsAcknowledgedBeforeItsCommitIsVisibleToOthers() {
        List<Long> seenAtAck = new ArrayList<>();
        List<TestDelivery<Order>> deliveries = TestDelivery.orders("v", 20);
        deliveries.forEach(delivery -> delivery.answering(Mono.defer(() -> database.client()
                .sql("SELECT count(*) FROM processed_messages p JOIN point_ledger l ON l.order_id = p.message_key"
                        + " WHERE order_id = :id")
                .bind("id", String.valueOf(delivery.id()))
                .map(row -> row.get(0, Long.class))
                .one()
                .doOnNext(count -> {
                    synchronized (seenAtAck) {
                        seenAtAck.add(count);
                    }
                })
                .then())));
        run(loyalty(pool), deliveries);

        assertThat(seenAtAck).hasSize(20).containsOnly(1L);
    }

    @Test
    void anAcknowledgementThatFailsUndoesNothingAndEndsNothing() {
        RecordingListener listener = new RecordingListener();
        List<TestDelivery<Order>> deliveries = TestDelivery.orders("a", 10);
        deliveries.get(3).answering(Mono.error(new IllegalStateException("channel lost")));
        List<Outcome> outcomes = run(orders(Order::apply).listener(listener).build(pool), deliveries);

        assertThat(outcomes).hasSize(10).allMatch(Outcome.Applied.class::isInstance);
        assertThat(listener.settleFailures).hasSize(1);
        assertThat(run(loyalty(pool), TestDelivery.order("a3"))).isInstanceOf(Outcome.Duplicate.class);
        database.assertAppliedOnce(10);
    }

    @Test
    void aDeliveryWhoseChannelIsLostIsDroppedInsteadOfStarted() {
        RecordingListener listener = new RecordingListener();
        TestDelivery<Order> lost = TestDelivery.order("1");
        lost.channelLost();

        assertThat(run(orders(Order::apply).listener(listener).build(pool), List.of(lost)))
                .isEmpty();
        assertThat(lost.settlements()).isEmpty();
        assertThat(listener.dropped).hasSize(1);
        database.assertAppliedOnce(0);
    }

    @Test
    void processAnswersWithoutDeadLettering() {
        TestDelivery<Order> bad = TestDelivery.order("1");
        Outcome outcome = orders((order, db) -> Mono.error(new PermanentFailure("never")))
                .build(pool)
                .process(bad)
                .block();

        assertThat(failureOf(Objects.requireNonNull(outcome)).reason()).isEqualTo("never");
        assertThat(bad.settlements()).isEmpty();
    }

    private static void assertUnanswered(Mono<Outcome> outcome) {
        StepVerifier.create(outcome.timeout(Duration.ofMillis(300)))
                .expectError(TimeoutException.class)
                .verify();
    }

    private long waitingForALock() {
        return database.count(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'");
    }
}
