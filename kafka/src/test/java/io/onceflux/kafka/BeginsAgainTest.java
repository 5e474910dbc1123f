package io.onceflux.kafka;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.Database;
import io.onceflux.Effect;
import io.onceflux.InvalidSetupException;
import io.onceflux.Order;
import io.onceflux.services.PostgresService;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Sinks;

/** What ends the client is not the end of the consumer, but for what cannot get better. */
class BeginsAgainTest {

    private final Database database = Database.create();
    private final Broker broker = Broker.create();

    @AfterEach
    void close() {
        database.assertNothingLeaked();
        broker.close();
        database.close();
    }

    /** In place of a plug-in of the client that is broken in a way that no plug-in should be. */
    public static final class Broken implements SeesRecords {

        static final AtomicInteger ERRORS = new AtomicInteger();

        @Override
        public ConsumerRecords<byte[], byte[]> onConsume(ConsumerRecords<byte[], byte[]> records) {
            if (ERRORS.getAndUpdate(left -> Math.max(0, left - 1)) > 0) {
                throw new LinkageError("a class is missing");
            }
            return records;
        }
    }

    @Test
    void anErrorWhileItPollsIsToldAndPausedForLongerEachTime() {
        broker.create(1);
        KafkaOptions options = broker.options(Protocol.COOPERATIVE)
                .property("interceptor.classes", Broken.class.getName())
                .backoff(Duration.ofMillis(50), Duration.ofSeconds(20))
                .build();
        try (Running running = Running.start(options, database.pool(6), Order::apply)) {
            broker.awaitMembers(1);
            Broken.ERRORS.set(4);
            broker.publish(Broker.ids("order-", 20));
            await().until(() -> database.effects() == 20);
            broker.awaitNoBacklog();
            List<Duration> pauses = running.listener.lost.stream()
                    .map(lost -> {
                        assertThat(lost.reason()).contains("a class is missing");
                        return lost.untilNextTry();
                    })
                    .toList();
            assertThat(pauses).hasSize(4);
            assertThat(pauses.get(3))
                    .as("to have joined the group is no success")
                    .isGreaterThan(pauses.get(0).multipliedBy(2));
            running.stop();
        } finally {
            Broken.ERRORS.set(0);
        }
        database.assertAppliedOnce(20);
    }

    @Test
    void theLimitForTheStartDoesNotCountWhileTheDatabaseIsAway() {
        broker.create(1);
        broker.publish(Broker.ids("order-", 5));
        KafkaOptions options =
                broker.options().startLimit(Duration.ofSeconds(1)).build();
        try (PostgresService postgres = PostgresService.start();
                Database away = Database.on(postgres)) {
            postgres.kill();
            try (Running running = Running.start(options, away.pool(6), Order::apply)) {
                await("for longer than the limit")
                        .during(Duration.ofSeconds(2))
                        .until(() -> running.error.get() == null);
                postgres.restart();
                await().until(() -> away.effects() == 5);
                broker.awaitNoBacklog();
                assertThat(running.error.get()).isNull();
                running.stop();
            }
            away.assertAppliedOnce(5);
        }
    }

    /** The two would throw each other out for ever, and the group would do nothing else. */
    @Test
    void whoIsReplacedByAnotherWithItsInstanceIdEnds() {
        broker.create(2);
        KafkaOptions options =
                broker.options().property("group.instance.id", "one").build();
        try (Running first = Running.start(options, database.pool(6), Order::apply)) {
            broker.publish(Broker.ids("order-", 10));
            await().until(() -> database.effects() == 10);
            try (Running second = Running.start(options, database.pool(6), Order::apply)) {
                await().until(() -> first.error.get() != null);
                assertThat(first.error.get())
                        .isInstanceOf(InvalidSetupException.class)
                        .hasMessageContaining("the same group.instance.id");
                broker.publish(Broker.ids("later-", 10));
                await().until(() -> database.effects() == 20);
                broker.awaitNoBacklog();
                assertThat(second.error.get()).isNull();
                second.stop();
            }
        }
        database.assertAppliedOnce(20);
    }

    /** The client goes on at its old place, and would pass over what is before it in the new log. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aTopicThatIsMadeAgainWhileItsConsumerIsBusyIsConsumedFromItsBeginning(boolean byPosition) {
        broker.create(1);
        broker.publish(Broker.ids("old-", 60));
        KafkaOptions.Builder described = broker.options();
        KafkaOptions options = (byPosition ? described.messageIdFromPosition() : described).build();
        Sinks.Empty<Void> go = Sinks.empty();
        Effect<Order> effect =
                (order, db) -> order.id().startsWith("old-") ? go.asMono().then(order.apply(db)) : order.apply(db);
        try (Running running = Running.start(
                options, database.pool(6), effect, consumer -> consumer.lanes(1).maxInFlight(2))) {
            await().until(() -> running.consumer.lanes().inFlight(0) > 0);
            broker.delete(broker.topic());
            broker.createTopic(broker.topic(), 1, Map.of());
            broker.publish(Broker.ids("new-", 300));
            go.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);

            await().atMost(Duration.ofMinutes(1))
                    .untilAsserted(() -> assertThat(database.count(
                                    "SELECT count(DISTINCT order_id) FROM point_ledger WHERE order_id LIKE 'new-%'"))
                            .isEqualTo(300));
            broker.awaitNoBacklog();
            assertThat(running.error.get()).isNull();
            running.stop();
        }
        assertThat(database.count("SELECT count(*) FROM point_ledger WHERE order_id LIKE 'new-%'"))
                .isEqualTo(300);
    }
}
