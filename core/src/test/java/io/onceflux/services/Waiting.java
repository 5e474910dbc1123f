package io.onceflux.services;

import java.time.Duration;
import java.util.function.BooleanSupplier;

/** Waits for a condition of the world outside this JVM, with a limit. */
final class Waiting {
    private static final Duration POLL = Duration.ofMillis(20);

    private Waiting() {}

    /** Returns when the condition holds; throws a sentence built from {@code what} when it does not in time. */
    static void until(String what, Duration limit, BooleanSupplier condition) {
        if (!holdsWithin(limit, condition)) {
            throw new IllegalStateException("Waited " + limit.toMillis() + " ms in vain until " + what + ".");
        }
    }

    static boolean holdsWithin(Duration limit, BooleanSupplier condition) {
        long end = System.nanoTime() + limit.toNanos();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - end > 0) {
                return false;
            }
            try {
                Thread.sleep(POLL.toMillis());
            } catch (InterruptedException e) {
                throw interrupted(e);
            }
        }
        return true;
    }

    static IllegalStateException interrupted(InterruptedException e) {
        Thread.currentThread().interrupt();
        return new IllegalStateException("Interrupted while waiting.", e);
    }
}
