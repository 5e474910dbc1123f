package io.onceflux.rabbit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.Database;
import io.onceflux.Order;
import io.onceflux.Outcome;
import io.onceflux.services.ForkedJvm;
import io.onceflux.services.RabbitService;
import java.time.Duration;
import java.util.Collections;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The consumer's process is killed with SIGKILL at the two moments that matter; another one takes over. */
class SurvivesCrashesTest {

    private final Database database = Database.create();
    private final Broker broker = Broker.create();

    @AfterEach
    void close() {
        broker.close();
        database.close();
    }

    @ParameterizedTest
    @CsvSource({"8, 1", "1, 50"})
    void aProcessKilledBetweenFiftyCommittedMessagesAndTheirAcknowledgementsLeavesFiftyEffectsAndDuplicates(
            int lanes, int maxBatch) {
        kill(CrashingService.Moment.COMMITTED, 50, lanes, maxBatch);
        database.assertAppliedOnce(50);
        await().until(() -> broker.ready(broker.queue()) == 50);

        try (Running running = Running.start(
                broker.options().build(), database.pool(6), Order::apply, builder -> builder.maxBatch(maxBatch))) {
            await().until(() -> running.outcomes.size() == 50);
            broker.awaitNoBacklog();
            assertThat(running.count(Outcome.Duplicate.class)).isEqualTo(50);
            running.stop();
        }
        database.assertAppliedOnce(50);
    }

    @Test
    void aProcessKilledBetweenEffectAndCommitLeavesNothingAndTheRedeliveryApplies() {
        kill(CrashingService.Moment.EFFECT_WRITTEN, 1, 8, 1);
        assertThat(database.effects()).as("rolled back by the kill").isZero();

        try (Running running = Running.start(broker.options().build(), database.pool(6), Order::apply)) {
            await().until(() -> running.outcomes.size() == 1);
            broker.awaitNoBacklog();
            assertThat(running.count(Outcome.Applied.class)).isEqualTo(1);
            running.stop();
        }
        database.assertAppliedOnce(1);
    }

    private void kill(CrashingService.Moment moment, int messages, int lanes, int maxBatch) {
        broker.declare();
        broker.publish(IntStream.range(0, messages).mapToObj(n -> "order-" + n).toList());
        try (ForkedJvm service = ForkedJvm.start(
                CrashingService.class,
                RabbitService.shared().uri(),
                broker.queue(),
                database.r2dbcUrl(),
                moment.name(),
                Integer.toString(lanes),
                Integer.toString(maxBatch))) {
            await().atMost(Duration.ofSeconds(60))
                    .until(() -> Collections.frequency(service.lines(), moment.name()) == messages);
            service.kill();
        }
    }
}
