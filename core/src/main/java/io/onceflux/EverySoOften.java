package io.onceflux;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;

/** Lets something through at once, and again only when some time has passed. */
final class EverySoOften {

    private final long nanos;
    private final AtomicLong openFrom = new AtomicLong(System.nanoTime());

    EverySoOften(Duration time) {
        this.nanos = time.toNanos();
    }

    boolean isOpen() {
        long now = System.nanoTime();
        long from = openFrom.get();
        return now - from >= 0 && openFrom.compareAndSet(from, now + nanos);
    }
}
