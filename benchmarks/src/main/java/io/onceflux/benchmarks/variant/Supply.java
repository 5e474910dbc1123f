package io.onceflux.benchmarks.variant;

import io.onceflux.benchmarks.scenario.Order;
import io.onceflux.benchmarks.scenario.Orders;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.Recorder;

/**
 * Messages of this process, handed out while it is open: as fast as they are taken, or at a fixed rate that does not wait for
 * anybody (so that a message that comes while others are late is late from when it should have come).
 */
final class Supply {

    private static final Duration PATIENCE = Duration.ofSeconds(30);
    private static final int DIGITS = 3;

    private final Orders orders;
    private final AtomicLong taken = new AtomicLong();
    private final LongAdder done = new LongAdder();
    private final Recorder latencies = new Recorder(DIGITS);

    private volatile boolean open;
    private double perSecond;
    private long firstOfPace;
    private long startOfPace;

    Supply(Orders orders) {
        this.orders = orders;
    }

    void pace(double rate) {
        perSecond = rate;
    }

    /** Lets messages be taken for so long; nobody takes one before. Returns how many were done meanwhile. */
    long openFor(Duration time, Runnable whenOpen) {
        long before = done.sum();
        latencies.reset();
        firstOfPace = taken.get();
        startOfPace = System.nanoTime();
        open = true;
        whenOpen.run();
        long end = startOfPace + time.toNanos();
        for (long left = time.toNanos(); left > 0; left = end - System.nanoTime()) {
            LockSupport.parkNanos(left);
        }
        long count = done.sum() - before;
        open = false;
        return count;
    }

    boolean isOpen() {
        return open;
    }

    boolean isPaced() {
        return perSecond > 0;
    }

    /** Takes the next message: its number in the row. */
    long take() {
        return taken.getAndIncrement();
    }

    long nextToTake() {
        return taken.get();
    }

    Order message(long index) {
        return orders.message(index);
    }

    /** When the message comes, by {@link System#nanoTime}; 0 if there is no pace. */
    long dueAt(long index) {
        return isPaced() ? startOfPace + (long) ((index - firstOfPace) * (1e9 / perSecond)) : 0;
    }

    static void awaitTime(long due) {
        for (long left = due - System.nanoTime(); left > 0; left = due - System.nanoTime()) {
            LockSupport.parkNanos(left);
        }
    }

    /** The message that was due then is done with. */
    void done(long due) {
        done.increment();
        if (due != 0) {
            latencies.recordValue(Math.max(0, System.nanoTime() - due));
        }
    }

    Histogram latencies() {
        return latencies.getIntervalHistogram();
    }

    /** Waits until everything that was taken is done. */
    void awaitAllDone() {
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (done.sum() < taken.get()) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("%d of %d messages are not done after %d s"
                        .formatted(taken.get() - done.sum(), taken.get(), PATIENCE.toSeconds()));
            }
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(1));
        }
    }

    long distinct() {
        return orders.distinct(taken.get());
    }
}
