package io.onceflux.rabbit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.Database;
import io.onceflux.Health;
import io.onceflux.Order;
import io.onceflux.Outcome;
import io.onceflux.PermanentFailure;
import io.onceflux.RecordingListener;
import io.onceflux.services.RabbitService;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/** The broker closes connections, cancels consumers, times out, and is killed; every message still has one effect. */
class RidesOutBrokerFailuresTest {

    /** The broker looks every second for messages that were not acknowledged within three seconds. */
    private static RabbitService service;

    private final Database database = Database.create();
    private Broker broker;

    @BeforeAll
    static void startBroker() {
        service = RabbitService.start();
        service.ctl("eval", "application:set_env(rabbit, consumer_timeout, 3000).");
        service.ctl("eval", "application:set_env(rabbit, channel_tick_interval, 1000).");
    }

    @AfterAll
    static void stopBroker() {
        service.close();
    }

    @BeforeEach
    void declare() {
        broker = Broker.on(service);
        broker.declare();
    }

    @AfterEach
    void close() {
        database.assertNothingLeaked();
        broker.close();
        database.close();
    }

    private static List<String> ids(int count) {
        return IntStream.range(0, count).mapToObj(i -> "order-" + i).toList();
    }

    /** The oracle's last part: a message sent afterwards is handled within ten seconds. */
    private void assertHandlesACanary() {
        broker.publish("canary");
        await().atMost(Duration.ofSeconds(10)).until(() -> database.effectsOf("canary") == 1);
        broker.awaitNoBacklog();
    }

    @Test
    void effectsThatRunWhileTheConnectionIsClosedCommitAndTheirRedeliveriesAreDuplicates() {
        AtomicInteger underWay = new AtomicInteger();
        Sinks.Empty<Void> go = Sinks.empty();
        broker.publish(ids(50));
        try (Running running = Running.start(
                broker.options().build(),
                database.pool(51),
                (order, db) -> Mono.defer(() -> {
                            underWay.incrementAndGet();
                            return go.asMono();
                        })
                        .then(order.apply(db)),
                builder -> builder.lanes(50))) {
            await().until(() -> underWay.get() >= 25);
            int committing = underWay.get();

            broker.closeConnections();
            await().until(() -> !running.listener.lost.isEmpty());
            go.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);

            await().until(() -> database.effects() == 50);
            broker.awaitNoBacklog();
            assertThat(running.listener.settleFailures).hasSizeGreaterThanOrEqualTo(committing);
            assertThat(running.count(Outcome.Duplicate.class)).isGreaterThanOrEqualTo(committing);
            assertThat(running.count(Outcome.Failed.class)).isZero();
            assertHandlesACanary();
            running.stop();
        }
        database.assertAppliedOnce(51);
        assertThat(broker.deadLetters()).isEmpty();
    }

    @Test
    void messagesThatFailAfterTheConnectionWasClosedAreDeadLetteredAndNotLost() {
        AtomicInteger underWay = new AtomicInteger();
        Sinks.Empty<Void> go = Sinks.empty();
        List<String> good = ids(10);
        List<String> bad = IntStream.range(0, 10).mapToObj(i -> "bad-" + i).toList();
        IntStream.range(0, 10).forEach(i -> broker.publish(good.get(i), bad.get(i)));
        try (Running running = Running.start(
                broker.options().build(),
                database.pool(21),
                (order, db) -> Mono.defer(() -> {
                            underWay.incrementAndGet();
                            return go.asMono();
                        })
                        .then(
                                order.id().startsWith("bad")
                                        ? Mono.error(new PermanentFailure("refused"))
                                        : order.apply(db)),
                builder -> builder.lanes(20))) {
            await().until(() -> underWay.get() >= 10);

            broker.closeConnections();
            await().until(() -> !running.listener.lost.isEmpty());
            go.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);

            await().until(() -> database.effects() == 10);
            broker.awaitNoBacklog();
            running.stop();
        }
        database.assertAppliedOnce(10);
        assertThat(broker.deadLetters())
                .extracting(letter -> letter.getProps().getMessageId())
                .containsAll(bad)
                .doesNotContainAnyElementsOf(good);
    }

    @Test
    void anEffectLongerThanTheBrokersConsumerTimeoutBecomesADuplicateAndOthersGoOn() {
        AtomicInteger slowOnes = new AtomicInteger();
        broker.publish("slow");
        try (Running running = Running.start(
                broker.options().consumerTimeout(Duration.ofSeconds(3)).build(),
                database.pool(6),
                (order, db) -> order.id().equals("slow") && slowOnes.incrementAndGet() == 1
                        ? Mono.delay(Duration.ofSeconds(6)).then(order.apply(db))
                        : order.apply(db))) {
            await().atMost(Duration.ofSeconds(40))
                    .until(() -> running.listener.lost.stream()
                            .anyMatch(lost -> lost.reason().contains("timed out")));
            broker.publish(ids(20));
            await().atMost(Duration.ofSeconds(40)).until(() -> database.effects() == 21);
            broker.awaitNoBacklog();
            assertThat(running.count(Outcome.Failed.class)).isZero();
            assertThat(running.listener.warnings)
                    .anySatisfy(warning -> assertThat(warning).contains("consumer_timeout"));
            assertHandlesACanary();
            running.stop();
        }
        database.assertAppliedOnce(22);
    }

    @Test
    void aQueueThatIsDeletedUnderTheConsumerIsDeclaredAndConsumedAgain() {
        try (Running running = Running.start(
                broker.options().declare(QueueDeclaration.classic()).build(), database.pool(6), Order::apply)) {
            broker.publish("order-1");
            await().until(() -> database.effects() == 1);
            broker.awaitNoBacklog();

            broker.delete(broker.queue());

            await().until(() -> running.listener.lost.stream()
                    .anyMatch(lost -> lost.reason().contains("cancelled the consumer")));
            await().ignoreExceptions().until(() -> broker.consumers() == 1);
            assertHandlesACanary();
            running.stop();
        }
        database.assertAppliedOnce(2);
    }

    @Test
    void aRightThatIsTakenAwayAndGivenBackIsWaitedForWithGrowingPauses() {
        String user = broker.user(".*", ".*", ".*");
        try (Running running = Running.start(
                broker.options().connectionFactory(broker.as(user)).build(), database.pool(6), Order::apply)) {
            await().until(() -> broker.consumers() == 1);
            broker.grant(user, ".*", ".*", "");
            broker.closeConnections();

            List<RecordingListener.Lost> lost = running.listener.lost;
            await().until(() -> lost.stream()
                            .filter(one -> one.reason().contains("the right to read"))
                            .count()
                    >= 5);
            assertThat(lost.get(0).reason()).isEqualTo("CONNECTION_FORCED - closed by a test");
            assertThat(lost.get(1).reason()).contains("ACCESS_REFUSED - access");
            assertThat(lost.get(5).untilNextTry()).isGreaterThan(lost.get(1).untilNextTry());
            assertThat(running.error.get()).isNull();

            broker.grant(user, ".*", ".*", ".*");
            assertHandlesACanary();
            running.stop();
        }
        database.assertAppliedOnce(1);
    }

    @Test
    void aBrokerThatIsKilledUnderLoadAndComesBackHasEveryMessageAppliedOnce() {
        broker.publish(ids(500));
        try (Running running = Running.start(
                broker.options().build(),
                database.pool(6),
                (order, db) -> Mono.delay(Duration.ofMillis(5)).then(order.apply(db)))) {
            await().until(() -> database.effects() >= 50);
            service.ctl("eval", "mnesia:dump_log()."); // The broker writes new queues to disk some seconds later.
            service.kill();
            await().until(() -> !running.listener.lost.isEmpty());
            assertThat(running.consumer.health().troubles())
                    .extracting(Health.Trouble::what)
                    .containsExactly(broker.options().build().source());
            service.restart();
            await().atMost(Duration.ofSeconds(60)).until(() -> database.effects() == 500);
            assertThat(running.consumer.health().status()).isEqualTo(Health.Status.UP);
            broker.awaitNoBacklog();
            assertThat(running.count(Outcome.Failed.class)).isZero();
            assertHandlesACanary();
            running.stop();
        }
        database.assertAppliedOnce(501);
    }
}
