package io.onceflux.benchmarks.variant;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntFunction;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Transactions in some lanes, one after the other in each, for as long as they are let. */
final class Loops {

    private final int lanes;
    private final LongAdder done = new LongAdder();
    private volatile boolean open;
    private CompletableFuture<Void> running = CompletableFuture.completedFuture(null);

    Loops(int lanes) {
        this.lanes = lanes;
    }

    /**
     * Runs for so long.
     *
     * @param transaction the next one of a lane; emits how many messages it did
     * @return how many messages all of them did
     */
    long run(Duration time, IntFunction<Mono<Integer>> transaction) {
        long before = done.sum();
        open = true;
        running = Flux.range(0, lanes)
                .flatMap(
                        lane -> Mono.defer(() -> transaction.apply(lane))
                                .doOnNext(done::add)
                                .repeat(() -> open)
                                .then(),
                        lanes)
                .then()
                .toFuture();
        long end = System.nanoTime() + time.toNanos();
        for (long left = time.toNanos(); left > 0 && !running.isDone(); left = end - System.nanoTime()) {
            LockSupport.parkNanos(left);
        }
        long count = done.sum() - before;
        open = false;
        return count;
    }

    /** Waits for the transactions under way; throws if one failed. */
    void rest() {
        running.join();
    }

    long done() {
        return done.sum();
    }
}
