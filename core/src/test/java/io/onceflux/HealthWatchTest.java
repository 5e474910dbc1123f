package io.onceflux;

import static org.assertj.core.api.Assertions.assertThat;

import io.onceflux.Health.Status;
import io.onceflux.Health.Trouble;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import org.junit.jupiter.api.Test;

class HealthWatchTest {

    private static final Settlement DEAD_LETTER = Settlement.deadLetter(
            "loyalty",
            new Failure(FailureKind.PERMANENT, null, "no", null, 1, Instant.EPOCH, new IllegalStateException("no")));

    private final TestDelivery<Order> delivery = TestDelivery.order("1");
    private final SteppedClock clock = new SteppedClock();
    private final HealthWatch watch = new HealthWatch(Duration.ofSeconds(60), clock);

    @Test
    void withoutTroublesItIsUp() {
        assertThat(watch.health().status()).isEqualTo(Status.UP);
        assertThat(watch.health().troubles()).isEmpty();
    }

    @Test
    void aDatabaseThatIsAwayIsDegradedThenDownAndUpAgainWithTheFirstCommit() {
        watch.onHeld(FailureKind.INFRASTRUCTURE, new IllegalStateException("refused"));
        clock.step(59);
        assertThat(watch.health().status()).isEqualTo(Status.DEGRADED);
        watch.onHeld(FailureKind.INFRASTRUCTURE, new IllegalStateException("still refused"));
        clock.step(1);
        assertThat(watch.health().status()).isEqualTo(Status.DOWN);
        assertThat(watch.health().troubles())
                .containsExactly(
                        new Trouble("database", "java.lang.IllegalStateException: still refused", Instant.EPOCH));

        watch.onResumed();
        assertThat(watch.health().status()).isEqualTo(Status.UP);
    }

    @Test
    void aBrokenSetupIsDownAtOnce() {
        watch.onHeld(FailureKind.BROKEN_SETUP, new IllegalStateException("no such table"));
        assertThat(watch.health().status()).isEqualTo(Status.DOWN);
        watch.onResumed();
        assertThat(watch.health().status()).isEqualTo(Status.UP);
    }

    @Test
    void aRefusedStartIsDownUntilTheNextOne() {
        watch.onRefused(new InvalidSetupException("Queue 'q' does not exist."));
        assertThat(watch.health().status()).isEqualTo(Status.DOWN);
        assertThat(watch.health().troubles())
                .containsExactly(new Trouble("start", "Queue 'q' does not exist.", Instant.EPOCH));

        watch.onStart();
        assertThat(watch.health().status()).isEqualTo(Status.UP);
    }

    @Test
    void eachSourceIsATroubleOfItsOwnAndTheLongestComesFirst() {
        watch.onSourceLost("queue 'a'", "gone", Duration.ofSeconds(1));
        clock.step(10);
        watch.onSourceLost("queue 'b'", "gone too", Duration.ofSeconds(1));
        watch.onSourceLost("queue 'a'", "still gone", Duration.ofSeconds(2));
        assertThat(watch.health().troubles()).extracting(Trouble::what).containsExactly("queue 'a'", "queue 'b'");

        watch.onSourceConsuming("queue 'a'");
        watch.onSourceClosed("queue 'b'");
        assertThat(watch.health().status()).isEqualTo(Status.UP);
    }

    @Test
    void aDeadLetterThatCannotBeStoredIsATroubleUntilOneIs() {
        watch.onSettleFailed(delivery, DEAD_LETTER, new IllegalStateException("no queue"));
        assertThat(watch.health().status()).isEqualTo(Status.DEGRADED);
        watch.onSettled(delivery, Settlement.acknowledge());
        assertThat(watch.health().status()).isEqualTo(Status.DEGRADED);
        watch.onSettled(delivery, DEAD_LETTER);
        assertThat(watch.health().status()).isEqualTo(Status.UP);
    }

    @Test
    void anAcknowledgementThatFailsIsNoTrouble() {
        watch.onSettleFailed(delivery, Settlement.acknowledge(), new IllegalStateException("channel lost"));
        assertThat(watch.health().status()).isEqualTo(Status.UP);
    }

    private static final class SteppedClock extends Clock {

        private Instant now = Instant.EPOCH;

        void step(long seconds) {
            now = now.plusSeconds(seconds);
        }

        @Override
        public Instant instant() {
            return now;
        }

        @Override
        public ZoneId getZone() {
            return ZoneOffset.UTC;
        }

        @Override
        public Clock withZone(ZoneId zone) {
            throw new UnsupportedOperationException("not needed");
        }
    }
}
