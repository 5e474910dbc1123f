package io.onceflux.chaos;

import io.onceflux.chaos.proxy.Trap;
import java.time.Duration;
import java.util.Random;

/**
 * One fault of the schedule, with everything that was drawn for it; each kind uses some of that.
 *
 * @param pause milliseconds before it, counted from the one before
 * @param consumer which consumer, from 1
 * @param passing how many COMMITs or acknowledgements pass before connections are hit
 * @param times how many are hit
 * @param millis how long it lasts
 */
record Fault(FaultKind kind, int pause, int consumer, int passing, int times, int millis) {

    static Fault draw(FaultKind kind, Random random) {
        return new Fault(
                kind,
                200 + random.nextInt(1_000),
                1 + random.nextInt(Consumers.COUNT),
                random.nextInt(20),
                1 + random.nextInt(6),
                200 + random.nextInt(4_800)); // up to longer than any limit of the consumers
    }

    Duration lasting() {
        return Duration.ofMillis(millis);
    }

    Trap trap(Trap.Action action) {
        return new Trap(action, passing, times, lasting(), () -> {});
    }

    /** Does this, once, to a connection that stands still at its moment. */
    Trap trap(Trap.Action action, Runnable atTheMoment) {
        return new Trap(action, passing, 1, lasting(), atTheMoment);
    }

    @Override
    public String toString() {
        return kind.describe(this);
    }
}
