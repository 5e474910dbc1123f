package io.onceflux;

import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.DoubleSupplier;

/**
 * Pauses that double from failure to failure up to a longest, each shortened by chance, by up to half. For sources of
 * deliveries, as for the consumer itself.
 *
 * @param min the first pause
 * @param max the longest pause
 * @param random numbers from 0 to 1
 */
public record Backoff(Duration min, Duration max, DoubleSupplier random) {

    /** With the chance of the thread that asks. */
    public static Backoff between(Duration min, Duration max) {
        return new Backoff(min, max, () -> ThreadLocalRandom.current().nextDouble());
    }

    /** A pause that only keeps apart those who met: up to 20 ms. */
    Duration atOnce() {
        return Duration.ofMillis((long) (random.getAsDouble() * 20));
    }

    /** The pause after the n-th failure in a row, counted from 1; at least 1 ms. */
    public Duration after(int failures) {
        int doublings = Math.min(failures - 1, 30);
        long millis = Math.min(min.toMillis() << doublings, max.toMillis());
        if (millis <= 0) { // The shift overflowed.
            millis = max.toMillis();
        }
        return Duration.ofMillis(Math.max(1, (long) (millis * (1 - random.getAsDouble() / 2))));
    }
}
