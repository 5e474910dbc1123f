package io.onceflux.benchmarks.variant;

import io.onceflux.Outcome;
import io.onceflux.benchmarks.scenario.Books;
import io.onceflux.benchmarks.scenario.Site;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * End to end: a place at the broker is filled with as many messages as take about the time, then consumed to its end. What it takes to fill
 * it, to connect and to begin is not measured; nor is anybody publishing meanwhile.
 */
abstract class FromBroker implements Variant {

    private static final long FIRST_FILLING = 500;
    private static final int STEEPEST = 8;
    private static final Duration PATIENCE = Duration.ofSeconds(60);

    private final Backlog backlog;
    private final boolean claims;
    private final @Nullable Books books;
    private final LongAdder done = new LongAdder();
    private final AtomicReference<@Nullable Throwable> error = new AtomicReference<>();
    private double perSecond;
    private long last;

    /** @param claims whether each message is claimed in a row of its own */
    FromBroker(Backlog backlog, Site site, boolean claims) {
        this.backlog = backlog;
        this.claims = claims;
        this.books = Books.open(site);
    }

    /** Without a database. */
    FromBroker(Backlog backlog) {
        this.backlog = backlog;
        this.claims = false;
        this.books = null;
    }

    /** Begins to consume. */
    abstract void connect();

    /** Consumes no more. */
    abstract void disconnect();

    final void oneDone() {
        done.increment();
    }

    final long doneSoFar() {
        return done.sum();
    }

    final void oneDone(Outcome outcome) {
        if (!outcome.isDone()) {
            failed(new IllegalStateException("a message was not handled: " + outcome));
        }
        oneDone();
    }

    final void failed(Throwable e) {
        error.set(e);
    }

    @Override
    public final void prepare(Duration time) {
        long wanted = (long) (perSecond * time.toNanos() / 1e9);
        last = last == 0 ? FIRST_FILLING : Math.max(FIRST_FILLING, Math.min(wanted, last * STEEPEST));
        backlog.fill(last);
        connect();
        await(backlog.published() - last + 1);
    }

    @Override
    public final long run(Duration time) {
        long before = done.sum();
        long start = System.nanoTime();
        await(backlog.published());
        long count = done.sum() - before;
        perSecond = count * 1e9 / (System.nanoTime() - start);
        return count;
    }

    private void await(long messages) {
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        while (done.sum() < messages) {
            Throwable failed = error.get();
            if (failed != null) {
                throw new IllegalStateException("the consumer failed", failed);
            }
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("%d of %d messages were done with after %d s"
                        .formatted(done.sum(), messages, PATIENCE.toSeconds()));
            }
            LockSupport.parkNanos(TimeUnit.MICROSECONDS.toNanos(500));
        }
    }

    @Override
    public final void rest() {
        disconnect();
    }

    @Override
    public final void audit() {
        backlog.requireEmpty();
        if (done.sum() != backlog.published()) {
            throw new IllegalStateException(
                    "%d messages were done with, but %d published".formatted(done.sum(), backlog.published()));
        }
        if (books != null) {
            books.requireOnce(backlog.distinct(), claims);
        }
    }

    @Override
    public void close() {
        backlog.close();
    }
}
