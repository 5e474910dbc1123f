package io.onceflux;

import static io.onceflux.FailureKind.BROKEN_SETUP;
import static io.onceflux.FailureKind.INFRASTRUCTURE;
import static org.assertj.core.api.Assertions.assertThat;

import io.onceflux.postgres.MissingPartitions;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class HeldNowTest {

    private static final String RESUMED = "resumed";

    private final Throwable error = new IllegalStateException("away");
    private final Throwable missing = MissingPartitions.missing();
    private final List<Throwable> errors = new ArrayList<>();
    private final List<Object> one = List.of("one");
    private final List<Object> another = List.of("another");
    private final List<Object> told = new ArrayList<>();
    private final HeldNow heldNow = new HeldNow(new ConsumerListener() {
        @Override
        public void onHeld(FailureKind kind, Throwable cause) {
            told.add(kind);
            errors.add(cause);
        }

        @Override
        public void onResumed() {
            told.add(RESUMED);
        }
    });

    @Test
    void holdingIsToldOnceAndItsEndOnce() {
        heldNow.hold(one, INFRASTRUCTURE, error);
        heldNow.hold(another, INFRASTRUCTURE, error);
        heldNow.outageIsOver();
        heldNow.outageIsOver();
        heldNow.effectIsApplied();

        assertThat(told).containsExactly(INFRASTRUCTURE, RESUMED);
    }

    @Test
    void anOutageThatTurnsOutToBeABrokenSetupIsToldAgain() {
        heldNow.hold(one, INFRASTRUCTURE, error);
        heldNow.hold(one, BROKEN_SETUP, error);
        heldNow.hold(another, INFRASTRUCTURE, error);
        heldNow.hold(another, BROKEN_SETUP, error);

        assertThat(told).containsExactly(INFRASTRUCTURE, BROKEN_SETUP);
    }

    @Test
    void anOutageDuringABrokenSetupIsNotWorthAnotherWordAndItsEndDoesNotMendTheSetup() {
        heldNow.hold(one, BROKEN_SETUP, error);
        heldNow.hold(one, INFRASTRUCTURE, error);
        heldNow.hold(another, INFRASTRUCTURE, error);
        heldNow.outageIsOver();
        heldNow.release(another);

        assertThat(told).containsExactly(BROKEN_SETUP);
    }

    @Test
    void anOutageIsOverWhenNothingIsHeldForItAnyMore() {
        heldNow.hold(one, INFRASTRUCTURE, error);
        heldNow.hold(another, INFRASTRUCTURE, error);
        heldNow.release(one);
        assertThat(told).containsExactly(INFRASTRUCTURE);
        heldNow.release(another);
        heldNow.release(another);

        assertThat(told).containsExactly(INFRASTRUCTURE, RESUMED);
    }

    @Test
    void aBrokenSetupIsOverWhenNothingIsHeldForItAnyMore() {
        heldNow.hold(one, BROKEN_SETUP, error);
        heldNow.hold(another, INFRASTRUCTURE, error);
        heldNow.release(one);

        assertThat(told).containsExactly(BROKEN_SETUP, RESUMED);
    }

    @Test
    void whatIsStillHeldAfterAnEffectWasAppliedIsToldWhenItFailsAgain() {
        heldNow.hold(one, BROKEN_SETUP, error);
        heldNow.effectIsApplied();
        heldNow.hold(another, INFRASTRUCTURE, error);
        heldNow.release(another);
        heldNow.hold(one, BROKEN_SETUP, error);

        assertThat(told).containsExactly(BROKEN_SETUP, RESUMED, INFRASTRUCTURE, RESUMED, BROKEN_SETUP);
    }

    @Test
    void whatWaitsForAPartitionIsHeldUntilItIsDoneWhateverOthersDo() {
        heldNow.hold(one, BROKEN_SETUP, missing);
        heldNow.hold(another, INFRASTRUCTURE, error);
        heldNow.outageIsOver();
        heldNow.effectIsApplied();
        heldNow.hold(one, BROKEN_SETUP, missing);
        heldNow.release(another);
        heldNow.hold(another, BROKEN_SETUP, missing);
        heldNow.release(one);
        heldNow.effectIsApplied();
        assertThat(told).containsExactly(BROKEN_SETUP);

        heldNow.release(another);
        assertThat(told).containsExactly(BROKEN_SETUP, RESUMED);
    }

    @Test
    void aBrokenSetupWhileAPartitionIsMissingIsToldAndWhatIsStillMissingAfterIt() {
        heldNow.hold(one, BROKEN_SETUP, missing);
        heldNow.hold(another, BROKEN_SETUP, error);
        heldNow.hold(one, BROKEN_SETUP, missing);
        assertThat(told).containsExactly(BROKEN_SETUP, BROKEN_SETUP);
        assertThat(errors).containsExactly(missing, error);

        heldNow.effectIsApplied();
        heldNow.hold(one, BROKEN_SETUP, missing);
        heldNow.effectIsApplied();
        assertThat(told).containsExactly(BROKEN_SETUP, BROKEN_SETUP, RESUMED, BROKEN_SETUP);
        assertThat(errors).last().isEqualTo(missing);
    }

    @Test
    void whatFailsOtherwiseOnceItsPartitionIsThereIsToldAnew() {
        heldNow.hold(one, BROKEN_SETUP, missing);
        heldNow.hold(one, BROKEN_SETUP, error);
        heldNow.hold(one, BROKEN_SETUP, missing);

        assertThat(errors).containsExactly(missing, error, missing);
        assertThat(told).containsExactly(BROKEN_SETUP, BROKEN_SETUP, RESUMED, BROKEN_SETUP);
    }

    @Test
    void whoWaitsForAPartitionSaysNothingAboutTheDatabase() {
        heldNow.hold(one, BROKEN_SETUP, missing);
        assertThat(heldNow.anyBut("another"::equals)).isFalse();
        heldNow.hold(another, INFRASTRUCTURE, error);
        assertThat(heldNow.anyBut("another"::equals)).isFalse();
        assertThat(heldNow.anyBut("third"::equals)).isTrue();
    }

    @Test
    void whoWasCancelledIsNotHeldByWhatWasStillUnderWay() {
        HeldNow.Waiter waiter = heldNow.new Waiter();
        waiter.waits(INFRASTRUCTURE, error);
        waiter.done();
        waiter.waits(INFRASTRUCTURE, error);

        assertThat(told).containsExactly(INFRASTRUCTURE, RESUMED, INFRASTRUCTURE, RESUMED);
    }

    /** State and word must not change places: told the other way round, the end of what is over would never be told. */
    @Test
    void theEndIsToldAfterTheBeginningWhicheverThreadFindsOut() throws Exception {
        int rounds = 50_000;
        CyclicBarrier together = new CyclicBarrier(2);
        CompletableFuture<Void> commits = CompletableFuture.runAsync(() -> {
            for (int round = 0; round < rounds; round++) {
                meet(together);
                heldNow.outageIsOver();
                meet(together);
            }
        });
        for (int round = 0; round < rounds; round++) {
            meet(together);
            heldNow.hold(one, INFRASTRUCTURE, error);
            meet(together);
            heldNow.outageIsOver();
        }
        commits.get(10, TimeUnit.SECONDS);

        assertThat(told).hasSize(2 * rounds);
        for (int at = 0; at < told.size(); at += 2) {
            assertThat(told.get(at)).isEqualTo(INFRASTRUCTURE);
            assertThat(told.get(at + 1)).isEqualTo(RESUMED);
        }
    }

    private static void meet(CyclicBarrier barrier) {
        try {
            barrier.await(10, TimeUnit.SECONDS);
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }
}
