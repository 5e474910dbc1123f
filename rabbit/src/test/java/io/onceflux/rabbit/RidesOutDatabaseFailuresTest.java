package io.onceflux.rabbit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.Database;
import io.onceflux.Order;
import io.onceflux.Outcome;
import io.onceflux.services.PostgresService;
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
                await("many attempts fail, longer than any limit on attempts")
                        .atMost(Duration.ofSeconds(30))
                        .until(() -> running.listener.retries.size() > 100);
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
}
