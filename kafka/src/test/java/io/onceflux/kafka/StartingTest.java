package io.onceflux.kafka;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.Database;
import io.onceflux.Health;
import io.onceflux.Order;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Health says that a consumer is up when its group has taken it in, and not before. */
class StartingTest {

    private final Database database = Database.create();
    private final Broker broker = Broker.create();

    @AfterEach
    void close() {
        database.assertNothingLeaked();
        broker.close();
        database.close();
    }

    @Test
    void untilTheGroupHasTakenItInAConsumerIsStarting() {
        broker.create(1);
        try (Running running = Running.start(broker.options().build(), database.pool(6), Order::apply)) {
            assertThat(running.consumer.health().status()).isEqualTo(Health.Status.STARTING);
            await().until(() -> running.consumer.health().status() == Health.Status.UP);
            assertThat(broker.members()).hasSize(1);
            running.stop();
        }
    }
}
