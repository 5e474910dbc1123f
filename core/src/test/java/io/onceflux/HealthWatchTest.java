package io.onceflux;

import static org.assertj.core.api.Assertions.assertThat;

import io.onceflux.Health.Status;
import io.onceflux.Health.Trouble;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.List;
import org.junit.jupiter.api.Test;

class HealthWatchTest {

    private static final Settlement DEAD_LETTER = Settlement.deadLetter("loyalty", failure("no"));

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
    void aRefusedStartIsDownUntilTheSameFluxStartsAgain() {
        HealthWatch.OfFlux refused = watch.ofFlux("a");
        refused.onStart();
        refused.onRefused(new InvalidSetupException("Queue 'q' does not exist."));
        refused.ended(false);
        assertThat(watch.health().status()).isEqualTo(Status.DOWN);
        assertThat(watch.health().troubles())
                .containsExactly(new Trouble("start", "Queue 'q' does not exist.", Instant.EPOCH));

        begin("b");
        assertThat(watch.health().status()).isEqualTo(Status.DOWN);
        begin("a");
        assertThat(watch.health().status()).isEqualTo(Status.UP);
    }

    /** It starts, and its set-up is as it should be. */
    private void begin(String deliveries) {
        HealthWatch.OfFlux flux = watch.ofFlux(deliveries);
        flux.onStart();
        flux.checked();
    }

    @Test
    void eachFluxThatEndedWithAnErrorHasToStartAgain() {
        watch.ofFlux("a").onFailed(new IllegalStateException("the mapping threw"));
        watch.ofFlux("a").onFailed(new IllegalStateException("the mapping threw again"));
        begin("a");
        assertThat(watch.health().troubles())
                .containsExactly(new Trouble(
                        "deliveries", "java.lang.IllegalStateException: the mapping threw again", Instant.EPOCH));
        begin("a");
        assertThat(watch.health().status()).isEqualTo(Status.UP);
    }

    @Test
    void aStartIsOneUntilItsSetupIsFitAndASourceUntilItIsAccepted() {
        HealthWatch.OfFlux flux = watch.ofFlux("a");
        flux.onStart();
        assertThat(watch.health())
                .isEqualTo(new Health(
                        Status.STARTING,
                        List.of(new Trouble("start", "the set-up is being looked at", Instant.EPOCH))));
        flux.onSourceOpening("queue");
        flux.checked();
        assertThat(watch.health().status()).isEqualTo(Status.STARTING);
        flux.onSourceConsuming("queue");
        assertThat(watch.health().status()).isEqualTo(Status.UP);
    }

    @Test
    void aStartThatLastsIsDownAndOneThatEndsIsOver() {
        HealthWatch.OfFlux flux = watch.ofFlux("a");
        flux.onStart();
        flux.onSourceOpening("queue");
        clock.step(60);
        assertThat(watch.health().status()).isEqualTo(Status.DOWN);
        flux.ended(false);
        assertThat(watch.health().status()).isEqualTo(Status.UP);
        flux.onSourceOpening("queue");
        assertThat(watch.health().status()).isEqualTo(Status.UP);
    }

    @Test
    void fluxesThatComeOneAfterTheOtherReplaceEachOther() {
        HealthWatch.OfFlux before = watch.ofFlux("before");
        before.onStart();
        watch.ofFlux("failed").onFailed(new IllegalStateException("no answer"));
        before.ended(true);
        assertThat(watch.health().status()).isEqualTo(Status.DOWN);

        HealthWatch.OfFlux after = watch.ofFlux("after");
        after.onStart();
        assertThat(watch.health().status()).isEqualTo(Status.DOWN);
        after.ended(true);
        assertThat(watch.health().status()).isEqualTo(Status.UP);
    }

    @Test
    void fluxesThatAreMadeAnewAndFailForEverTakeABoundedPlace() {
        for (int i = 0; i < 10_000; i++) {
            watch.ofFlux("flux-" + i).onFailed(new IllegalStateException("no answer"));
        }
        assertThat(watch.health().troubles()).hasSizeLessThanOrEqualTo(100);
    }

    @Test
    void whatCallsFailWithIsForgottenWhenNoneHasFailedForLong() {
        watch.ofCalls().failed(failure("away"));
        clock.step(59);
        assertThat(watch.health().status()).isEqualTo(Status.DEGRADED);
        watch.ofCalls().failed(failure("still away"));
        clock.step(59);
        assertThat(watch.health().status()).isEqualTo(Status.DOWN);
        assertThat(watch.health().troubles()).containsExactly(new Trouble("calls", "still away", Instant.EPOCH));
        clock.step(1);
        assertThat(watch.health().status()).isEqualTo(Status.UP);

        watch.ofCalls().failed(failure("away again"));
        assertThat(watch.health().status()).isEqualTo(Status.DEGRADED);
    }

    @Test
    void callsThatFailByABrokenSetupAreDownAtOnceAndForgottenLikeOthers() {
        watch.ofCalls().failed(failure(FailureKind.BROKEN_SETUP, "no table"));
        assertThat(watch.health().status()).isEqualTo(Status.DOWN);
        watch.ofCalls().failed(failure("away"));
        assertThat(watch.health().status()).isEqualTo(Status.DOWN);
        assertThat(watch.health().troubles()).extracting(Trouble::what).containsOnly("calls");
        clock.step(60);
        assertThat(watch.health().status()).isEqualTo(Status.UP);

        watch.ofCalls().failed(failure(FailureKind.BROKEN_SETUP, "no table"));
        watch.onOutcome(delivery, new Outcome.Duplicate(new MessageKey("loyalty", "1")), Duration.ZERO);
        assertThat(watch.health()).isEqualTo(new Health(Status.UP, List.of()));
    }

    @Test
    void whatIsTheMessagesOwnFaultIsNoTroubleOfCalls() {
        watch.ofCalls().failed(failure(FailureKind.PERMANENT, "no"));
        watch.ofCalls().failed(failure(FailureKind.EFFECT, "no"));
        assertThat(watch.health().status()).isEqualTo(Status.UP);
    }

    @Test
    void callsThatAreRefusedAreDownUntilOneIsDoneOrNoneHasComeForLong() {
        watch.ofCalls().onRefused(new InvalidSetupException("no table"));
        assertThat(watch.health().status()).isEqualTo(Status.DOWN);
        watch.onOutcome(delivery, new Outcome.Duplicate(new MessageKey("loyalty", "1")), Duration.ZERO);
        assertThat(watch.health().status()).isEqualTo(Status.UP);

        watch.ofCalls().onRefused(new InvalidSetupException("no table"));
        clock.step(60);
        assertThat(watch.health().status()).isEqualTo(Status.UP);
    }

    @Test
    void eachSourceIsATroubleOfItsOwnAndTheLongestComesFirst() {
        HealthWatch.OfFlux flux = watch.ofFlux("f");
        flux.onSourceLost("queue 'a'", "gone", Duration.ofSeconds(1));
        clock.step(10);
        flux.onSourceLost("queue 'b'", "gone too", Duration.ofSeconds(1));
        flux.onSourceLost("queue 'a'", "still gone", Duration.ofSeconds(2));
        assertThat(watch.health().troubles()).extracting(Trouble::what).containsExactly("queue 'a'", "queue 'b'");

        flux.onSourceConsuming("queue 'a'");
        flux.onSourceClosed("queue 'b'");
        assertThat(watch.health().status()).isEqualTo(Status.UP);
    }

    @Test
    void sourcesOfOneNameInTwoFluxesAreNotTheSame() {
        HealthWatch.OfFlux one = watch.ofFlux("f");
        HealthWatch.OfFlux other = watch.ofFlux("f");
        one.onSourceLost("queue 'a'", "gone", Duration.ofSeconds(1));
        other.onSourceConsuming("queue 'a'");
        other.onSourceClosed("queue 'a'");
        assertThat(watch.health().status()).isEqualTo(Status.DEGRADED);

        one.ended(false);
        one.onSourceLost("queue 'a'", "gone", Duration.ofSeconds(1));
        assertThat(watch.health().status()).isEqualTo(Status.UP);
    }

    @Test
    void aDeadLetterThatCannotBeStoredIsATroubleUntilItIsOrIsLeftToRedelivery() {
        TestDelivery<Order> other = TestDelivery.order("2");
        watch.onSettleFailed(delivery, DEAD_LETTER, new IllegalStateException("no queue"));
        watch.onSettleFailed(other, DEAD_LETTER, new IllegalStateException("no queue"));
        assertThat(watch.health().status()).isEqualTo(Status.DEGRADED);
        watch.onSettled(delivery, Settlement.acknowledge());
        watch.onSettled(TestDelivery.order("3"), DEAD_LETTER);
        watch.onSettled(delivery, DEAD_LETTER);
        assertThat(watch.health().status()).isEqualTo(Status.DEGRADED);
        watch.onSettleFailed(other, DEAD_LETTER, new IllegalStateException("channel lost"));
        watch.onUnsettled(other, DEAD_LETTER);
        assertThat(watch.health().status()).isEqualTo(Status.UP);
    }

    @Test
    void anAcknowledgementThatFailsIsNoTrouble() {
        watch.onSettleFailed(delivery, Settlement.acknowledge(), new IllegalStateException("channel lost"));
        assertThat(watch.health().status()).isEqualTo(Status.UP);
    }

    private static Failure failure(String reason) {
        return failure(FailureKind.INFRASTRUCTURE, reason);
    }

    private static Failure failure(FailureKind kind, String reason) {
        return new Failure(kind, null, reason, null, 1, Instant.EPOCH, new IllegalStateException(reason));
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
