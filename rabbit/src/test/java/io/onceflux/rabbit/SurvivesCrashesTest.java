package io.onceflux.rabbit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.Database;
import io.onceflux.Order;
import io.onceflux.Outcome;
import io.onceflux.services.ForkedJvm;
import io.onceflux.services.RabbitService;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The consumer's process is killed with SIGKILL at the two moments that matter; another one takes over. */
class SurvivesCrashesTest {

    private final Database database = Database.create();
    private final Broker broker = Broker.create();

    @AfterEach
    void close() {
        broker.close();
        database.close();
    }

    @Test
    void aProcessKilledBetweenCommitAndAcknowledgementLeavesOneEffectAndADuplicate() {
        kill(CrashingService.Moment.COMMITTED);
        assertThat(database.effects()).as("committed before the kill").isEqualTo(1);

        try (Running running = Running.start(broker.options().build(), database.pool(6), Order::apply)) {
            await().until(() -> running.outcomes.size() == 1);
            broker.awaitNoBacklog();
            assertThat(running.count(Outcome.Duplicate.class)).isEqualTo(1);
            running.stop();
        }
        database.assertAppliedOnce(1);
    }

    @Test
    void aProcessKilledBetweenEffectAndCommitLeavesNothingAndTheRedeliveryApplies() {
        kill(CrashingService.Moment.EFFECT_WRITTEN);
        assertThat(database.effects()).as("rolled back by the kill").isZero();

        try (Running running = Running.start(broker.options().build(), database.pool(6), Order::apply)) {
            await().until(() -> running.outcomes.size() == 1);
            broker.awaitNoBacklog();
            assertThat(running.count(Outcome.Applied.class)).isEqualTo(1);
            running.stop();
        }
        database.assertAppliedOnce(1);
    }

    private void kill(CrashingService.Moment moment) {
        broker.declare();
        broker.publish("order-1");
        try (ForkedJvm service = ForkedJvm.start(
                CrashingService.class,
                RabbitService.shared().uri(),
                broker.queue(),
                database.r2dbcUrl(),
                moment.name())) {
            service.awaitLine(line -> line.equals(moment.name()), Duration.ofSeconds(60));
            service.kill();
        }
    }
}
