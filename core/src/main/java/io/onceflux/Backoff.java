package io.onceflux;

import java.time.Duration;
import java.util.function.DoubleSupplier;

/**
 * Pauses that double from attempt to attempt up to a longest, each spread by up to half of itself.
 *
 * @param random numbers from 0 to 1
 */
record Backoff(Duration min, Duration max, DoubleSupplier random) {

    /** The pause after the n-th failure, counted from 1. */
    Duration after(int failures) {
        int doublings = Math.min(failures - 1, 30);
        long millis = Math.min(min.toMillis() << doublings, max.toMillis());
        if (millis <= 0) { // The shift overflowed.
            millis = max.toMillis();
        }
        return Duration.ofMillis(Math.max(1, (long) (millis * (1 - random.getAsDouble() / 2))));
    }
}
