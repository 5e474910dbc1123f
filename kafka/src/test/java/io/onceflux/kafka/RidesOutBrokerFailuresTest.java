package io.onceflux.kafka;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.Database;
import io.onceflux.Health;
import io.onceflux.Order;
import io.onceflux.Outcome;
import io.onceflux.PermanentFailure;
import io.onceflux.services.KafkaService;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/** The broker is killed and comes back, or is away for long, while effects end. */
class RidesOutBrokerFailuresTest {

    private static final KafkaService SERVICE = KafkaService.start();

    private final Database database = Database.create();
    private final Broker broker = Broker.on(SERVICE);

    @AfterAll
    static void stop() {
        SERVICE.close();
    }

    @AfterEach
    void close() {
        database.assertNothingLeaked();
        broker.close();
        database.close();
    }

    private void assertHandlesACanary() {
        broker.publish("canary");
        await().untilAsserted(() -> assertThat(database.effectsOf("canary")).isEqualTo(1));
        broker.awaitNoBacklog();
    }

    @ParameterizedTest
    @EnumSource(
            value = Protocol.class,
            names = {"COOPERATIVE", "CONSUMER"})
    void aBrokerThatIsKilledUnderLoadAndComesBackHasEveryMessageAppliedOnce(Protocol protocol) {
        broker.create(3);
        broker.publish(Broker.ids("order-", 1_000));
        KafkaOptions options = broker.options(protocol).build();
        try (Running running = Running.start(
                options,
                database.pool(6),
                (order, db) -> Mono.delay(Duration.ofMillis(5)).then(order.note(db)))) {
            await().until(() -> database.effects() >= 50);
            SERVICE.kill();
            await().until(() -> !running.listener.lost.isEmpty());
            assertThat(running.consumer.health().troubles())
                    .extracting(Health.Trouble::what)
                    .containsExactly(options.source());
            SERVICE.restart();
            await().until(() -> database.effects() == 1_000);
            broker.awaitNoBacklog();
            await().until(() -> running.consumer.health().status() == Health.Status.UP);
            assertThat(running.count(Outcome.Failed.class)).isZero();
            assertHandlesACanary();
            running.stop();
        }
        database.assertAppliedOnce(1_001);
    }

    /** Twice the session's timeout, so that the group has forgotten the consumer when it is back. */
    @Test
    void aBrokerThatIsAwayForLongerThanTheSessionWhileEffectsEndIsJoinedAgain() {
        broker.create(2);
        broker.publish(Broker.ids("order-", 100));
        broker.publish("bad");
        AtomicInteger underWay = new AtomicInteger();
        Sinks.Empty<Void> go = Sinks.empty();
        try (Running running = Running.start(
                broker.options().confirmLimit(Duration.ofSeconds(2)).build(),
                database.pool(6),
                (order, db) -> Mono.defer(() -> {
                            underWay.incrementAndGet();
                            return go.asMono();
                        })
                        .then(
                                order.id().equals("bad")
                                        ? Mono.error(new PermanentFailure("refused"))
                                        : order.apply(db)))) {
            await().until(() -> underWay.get() == 4);
            SERVICE.kill();
            go.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);
            await("what had been taken is handled meanwhile").until(() -> database.effects() >= 50);
            await("long away").pollDelay(Duration.ofSeconds(12)).until(() -> !running.listener.lost.isEmpty());
            assertThat(running.consumer.health().status()).isNotEqualTo(Health.Status.UP);
            SERVICE.restart();

            await().until(() -> database.effects() == 100);
            broker.awaitNoBacklog();
            assertHandlesACanary();
            await().until(() -> running.consumer.health().status() == Health.Status.UP);
            assertThat(broker.deadLetters()).isNotEmpty();
            running.stop();
        }
        database.assertAppliedOnce(101);
    }

    @Test
    void anIdleConsumerNoticesThatItsBrokerIsAwayAndStopsInTime() {
        broker.create(1);
        try (Running running = Running.start(broker.options().build(), database.pool(6), Order::apply)) {
            broker.publish("order-1");
            await().until(() -> database.effects() == 1);
            broker.awaitNoBacklog();
            SERVICE.kill();
            await().until(() -> running.consumer.health().status() != Health.Status.UP);

            long start = System.nanoTime();
            running.stop();
            await("the source is closed")
                    .until(() -> Thread.getAllStackTraces().keySet().stream()
                            .noneMatch(thread -> thread.getName().contains(broker.group())));
            assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(Duration.ofSeconds(11));
        } finally {
            SERVICE.restart();
        }
        database.assertAppliedOnce(1);
    }

    @Test
    void aBrokerThatDoesNotAnswerHoldsUpNothingAndIsConsumedAgain() {
        broker.create(2);
        broker.publish(Broker.ids("order-", 50));
        try (Running running = Running.start(
                broker.options(Protocol.COOPERATIVE)
                        .property("request.timeout.ms", 3_000)
                        .property("default.api.timeout.ms", 5_000)
                        .build(),
                database.pool(6),
                Order::apply)) {
            await().until(() -> database.effects() == 50);
            broker.awaitNoBacklog();
            SERVICE.freeze();
            await().until(() -> !running.listener.lost.isEmpty());
            SERVICE.thaw();
            assertHandlesACanary();
            running.stop();
        }
        database.assertAppliedOnce(51);
    }

    @Test
    void aTopicThatIsDeletedAndCreatedAnewIsConsumedFromItsBeginning() {
        broker.create(1);
        broker.publish(Broker.ids("order-", 20));
        try (Running running = Running.start(
                broker.options(Protocol.COOPERATIVE)
                        .property("metadata.max.age.ms", 500)
                        .build(),
                database.pool(6),
                Order::apply)) {
            await().until(() -> database.effects() == 20);
            broker.awaitNoBacklog();
            broker.delete(broker.topic());
            await().ignoreExceptions()
                    .until(() ->
                            broker.admin().listTopics().names().get().stream().noneMatch(broker.topic()::equals));
            broker.createTopic(broker.topic(), 1, java.util.Map.of());
            broker.publish(Broker.ids("new-", 10));
            await().until(() -> database.effects() == 30);
            broker.awaitNoBacklog();
            running.stop();
        }
        database.assertAppliedOnce(30);
    }
}
