package io.onceflux.rabbit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.Database;
import io.onceflux.Health;
import io.onceflux.Order;
import io.onceflux.Outcome;
import io.onceflux.services.PostgresService;
import io.onceflux.services.RabbitService;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** PostgreSQL is away; no message is given up and no delivery limit is used up. */
class RidesOutDatabaseFailuresTest {

    private static List<String> ids(int count) {
        return IntStream.range(0, count).mapToObj(i -> "order-" + i).toList();
    }

    @Test
    void aQuorumQueuesDeliveryLimitIsNotUsedUpByAnOutage() {
        try (PostgresService postgres = PostgresService.start();
                Database database = Database.on(postgres);
                Broker broker = Broker.create()) {
            broker.declare(QueueDeclaration.quorum(3));
            try (Running running = Running.start(broker.options().build(), database.pool(6), Order::apply)) {
                broker.publish("before");
                await().until(() -> database.effects() == 1);

                postgres.kill();
                broker.publish(ids(100));
                await().until(() -> running.listener.held.size() == 1);
                int handled = running.outcomes.size();
                await("many attempts fail, longer than any limit on attempts")
                        .during(Duration.ofSeconds(20))
                        .atMost(Duration.ofSeconds(25))
                        .until(() -> running.outcomes.size() == handled);
                assertThat(running.listener.retries).hasSizeGreaterThan(100);
                postgres.restart();

                await().atMost(Duration.ofSeconds(30)).until(() -> running.count(Outcome.Applied.class) == 101);
                broker.awaitNoBacklog();
                assertThat(running.count(Outcome.Failed.class)).isZero();
                assertThat(running.listener.resumed.get()).isEqualTo(1);
                running.stop();
            }
            database.assertAppliedOnce(101);
            assertThat(broker.deadLetters()).isEmpty();
        }
    }

    @Test
    void anOutageLongerThanTheBrokersConsumerTimeoutUsesUpOneDeliveryAndConsumingWaitsForTheDatabase() {
        try (PostgresService postgres = PostgresService.start();
                RabbitService rabbit = RabbitService.start();
                Database database = Database.on(postgres);
                Broker broker = Broker.on(rabbit)) {
            rabbit.ctl("eval", "application:set_env(rabbit, consumer_timeout, 3000).");
            rabbit.ctl("eval", "application:set_env(rabbit, channel_tick_interval, 1000).");
            broker.declare(
                    QueueDeclaration.quorum(1)); // The second time that a message is given back would be its last.
            RabbitOptions options =
                    broker.options().consumerTimeout(Duration.ofSeconds(3)).build();
            try (Running running = Running.start(options, database.pool(6), Order::apply)) {
                broker.publish("before");
                await().until(() -> database.effects() == 1);

                postgres.kill();
                broker.publish(ids(50));
                await().atMost(Duration.ofSeconds(30))
                        .until(() -> running.listener.lost.stream()
                                .anyMatch(lost -> lost.reason().contains("timed out")));
                await("nothing is taken from the broker for three more of its timeouts")
                        .pollInterval(Duration.ofMillis(500))
                        .during(Duration.ofSeconds(9))
                        .atMost(Duration.ofSeconds(20))
                        .until(() -> broker.consumers() == 0 && broker.ready(broker.queue()) == 50);
                assertThat(running.listener.lost).hasSize(1);
                assertThat(running.consumer.health().troubles())
                        .extracting(Health.Trouble::what)
                        .containsExactlyInAnyOrder("database", options.source());
                postgres.restart();

                await().atMost(Duration.ofSeconds(30)).until(() -> running.count(Outcome.Applied.class) == 51);
                broker.awaitNoBacklog();
                assertThat(running.count(Outcome.Failed.class)).isZero();
                assertThat(running.consumer.health().status()).isEqualTo(Health.Status.UP);
                running.stop();
            }
            database.assertAppliedOnce(51);
            assertThat(broker.deadLetters()).isEmpty();
        }
    }
}
