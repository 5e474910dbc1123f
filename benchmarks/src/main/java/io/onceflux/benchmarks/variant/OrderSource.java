package io.onceflux.benchmarks.variant;

import io.onceflux.Delivery;
import io.onceflux.Settlement;
import io.onceflux.benchmarks.scenario.Order;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Operators;

/**
 * The {@link Supply} as deliveries for one subscriber: as many as it asks for, on the thread that asks, or at the supply's
 * pace on a thread of its own. As cheap as a source can be, so that it is the pipeline that is measured.
 */
final class OrderSource extends Flux<Delivery<Order>> implements AutoCloseable {

    private static final long NOBODY_ASKS_NANOS = 50_000;
    private static final int START_SECONDS = 60;

    private final Supply supply;
    private final ExecutorService thread = Executors.newSingleThreadExecutor();
    private final AtomicLong refused = new AtomicLong();
    private final CompletableFuture<Emission> emission = new CompletableFuture<>();

    OrderSource(Supply supply) {
        this.supply = supply;
    }

    @Override
    public void subscribe(CoreSubscriber<? super Delivery<Order>> actual) {
        Emission started = new Emission(actual);
        actual.onSubscribe(started);
        emission.complete(started);
    }

    /** Waits until the consumer has looked at its database and asks for messages. */
    void awaitSubscriber() {
        emission.orTimeout(START_SECONDS, TimeUnit.SECONDS).join();
    }

    /** The consumer has ended. */
    void ended(Throwable error) {
        emission.completeExceptionally(error);
    }

    /** Emits while the supply is open. */
    void start() {
        Emission current = emission.join();
        thread.execute(supply.isPaced() ? () -> atPace(current) : current::emit);
    }

    private void atPace(Emission current) {
        while (supply.isOpen()) {
            Supply.awaitTime(supply.dueAt(supply.nextToTake()));
            current.emit();
            if (supply.dueAt(supply.nextToTake()) <= System.nanoTime()) {
                LockSupport.parkNanos(NOBODY_ASKS_NANOS); // As soon as somebody does, it goes out on their thread.
            }
        }
    }

    /** Throws if a message was given back or given up. */
    void requireNothingRefused() {
        if (refused.get() > 0) {
            throw new IllegalStateException(refused + " messages were given back or given up");
        }
    }

    @Override
    public void close() {
        thread.shutdownNow();
    }

    private final class Emission implements Subscription {

        private final CoreSubscriber<? super Delivery<Order>> actual;
        private final AtomicLong requested = new AtomicLong();
        private final AtomicInteger turns = new AtomicInteger();
        private volatile boolean cancelled;

        Emission(CoreSubscriber<? super Delivery<Order>> actual) {
            this.actual = actual;
        }

        @Override
        public void request(long n) {
            requested.getAndUpdate(before -> Operators.addCap(before, n));
            emit();
        }

        @Override
        public void cancel() {
            cancelled = true;
        }

        /** One thread at a time; who comes meanwhile leaves it another turn to do. */
        void emit() {
            if (turns.getAndIncrement() != 0) {
                return;
            }
            int seen = 1;
            do {
                long asked = requested.get();
                long emitted = 0;
                while (emitted < asked && !cancelled && isThere()) {
                    long index = supply.take();
                    actual.onNext(new MemoryDelivery(supply.message(index), supply.dueAt(index)));
                    emitted++;
                }
                requested.addAndGet(-emitted);
                seen = turns.addAndGet(-seen);
            } while (seen != 0);
        }

        private boolean isThere() {
            return supply.isOpen() && (!supply.isPaced() || supply.dueAt(supply.nextToTake()) <= System.nanoTime());
        }
    }

    /** Told at once when it is settled: there is nobody to wait for. */
    private final class MemoryDelivery implements Delivery<Order> {

        private final Order order;
        private final long due;

        MemoryDelivery(Order order, long due) {
            this.order = order;
            this.due = due;
        }

        @Override
        public Order payload() {
            return order;
        }

        @Override
        public @Nullable String id() {
            return null;
        }

        @Override
        public Mono<Void> settle(Settlement settlement) {
            if (!(settlement instanceof Settlement.Acknowledge)) {
                refused.incrementAndGet();
            }
            supply.done(due);
            return Mono.empty();
        }
    }
}
