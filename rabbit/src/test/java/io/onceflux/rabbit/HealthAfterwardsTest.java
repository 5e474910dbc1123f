package io.onceflux.rabbit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.Breaker;
import io.onceflux.Database;
import io.onceflux.FailureKind;
import io.onceflux.Health;
import io.onceflux.Order;
import io.onceflux.Outcome;
import io.onceflux.PermanentFailure;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;

/** When what was away is back, health says so, though the queue is empty and no message comes that could show it. */
class HealthAfterwardsTest {

    private static final Duration LIMIT = Duration.ofSeconds(40);

    private final Database database = Database.create();
    private final Broker broker = Broker.create();

    @AfterEach
    void close() {
        database.assertNothingLeaked();
        broker.close();
        database.close();
    }

    /** A probe that believes it sends no traffic to an instance that takes none. */
    @Test
    void itIsUpWhenTheBrokerHasAcceptedItAndNotBefore() {
        broker.declare();
        try (Running running = Running.start(broker.options().build(), database.pool(6), Order::apply)) {
            assertThat(running.consumer.health().status()).isEqualTo(Health.Status.STARTING);
            await().atMost(LIMIT).until(() -> running.consumer.health().status() == Health.Status.UP);
            assertThat(broker.consumers()).isOne();
            running.stop();
        }
    }

    @Test
    void databaseAndBrokerWereAwayAndTheQueueIsEmpty() {
        broker.declare();
        Breaker connections = new Breaker(database.pool(6));
        try (Running running = Running.start(
                broker.options().build(),
                connections,
                Order::apply,
                builder -> builder.downAfter(Duration.ofSeconds(1)))) {
            await().atMost(LIMIT).until(() -> broker.consumers() == 1);
            connections.away = true;
            broker.closeConnections();
            await().atMost(LIMIT).until(() -> running.listener.held.contains(FailureKind.INFRASTRUCTURE));
            connections.away = false;

            await().atMost(LIMIT).until(() -> broker.consumers() == 1);
            await().atMost(LIMIT)
                    .untilAsserted(() ->
                            assertThat(running.consumer.health().troubles()).isEmpty());
            running.stop();
        }
    }

    @Test
    void anotherInstanceWasGivenTheMessageWhoseDeadLetterCouldNotBeStored() {
        broker.declare();
        AtomicBoolean mended = new AtomicBoolean();
        try (Running running = Running.start(
                broker.options().confirmLimit(Duration.ofSeconds(1)).build(),
                database.pool(6),
                (order, db) -> mended.get() ? order.apply(db) : Mono.error(new PermanentFailure("no customer")))) {
            await().atMost(LIMIT).until(() -> broker.consumers() == 1);
            broker.delete(broker.deadLetterQueue());
            broker.publish("1");
            await().atMost(LIMIT).until(() -> running.listener.settleFailures.size() > 1);
            assertThat(running.consumer.health().troubles())
                    .extracting(Health.Trouble::what)
                    .contains("dead letters");

            mended.set(true);
            broker.declare();
            broker.closeConnections();
            await().atMost(LIMIT)
                    .until(() ->
                            database.effects() == 1 || !broker.deadLetters().isEmpty());
            await().atMost(LIMIT)
                    .untilAsserted(() ->
                            assertThat(running.consumer.health().troubles()).isEmpty());
            assertThat(running.count(Outcome.Applied.class) + running.count(Outcome.Failed.class))
                    .isPositive();
            running.stop();
        }
    }
}
