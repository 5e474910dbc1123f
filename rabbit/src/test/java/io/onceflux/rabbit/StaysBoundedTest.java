package io.onceflux.rabbit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.Database;
import io.onceflux.services.ForkedJvm;
import io.onceflux.services.RabbitService;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** A backlog of a gigabyte and a slow effect in a small heap: memory and unacknowledged messages stay bounded. */
class StaysBoundedTest {

    private static final int MESSAGES = 100_000;
    private static final int PREFETCH = 100;

    private final Database database = Database.create();
    private final Broker broker = Broker.create();

    @AfterEach
    void close() {
        broker.close();
        database.close();
    }

    @Test
    void aBacklogThatIsLargerThanTheHeapIsWorkedOffWithinThePrefetch() {
        broker.declare();
        broker.publishMany(MESSAGES, 10_000);
        try (ForkedJvm service = ForkedJvm.start(
                SlowService.class,
                List.of("-Xmx128m", "-XX:+ExitOnOutOfMemoryError"),
                Map.of(),
                RabbitService.shared().uri(),
                broker.queue(),
                database.r2dbcUrl(),
                Integer.toString(PREFETCH))) {
            for (int applied = 1; applied <= 5; applied++) {
                long wanted = applied * 300L;
                await().atMost(Duration.ofSeconds(60)).until(() -> database.effects() >= wanted);
                assertThat(broker.unacknowledged()).as("unacknowledged").isBetween(1L, (long) PREFETCH);
            }
            assertThat(service.isAlive()).isTrue();
            service.terminate();
            assertThat(service.exitCode()).isEqualTo(143);
        }
        await().until(() -> broker.unacknowledged() == 0);
        assertThat(database.effects()).isEqualTo(MESSAGES - broker.backlog());
        assertThat(database.claims()).isEqualTo(database.effects());
    }
}
