package io.onceflux.testkit;

import io.onceflux.Delivery;
import io.onceflux.Failure;
import io.onceflux.Settlement;
import io.onceflux.testkit.DuplicatingSource.Sent;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;
import reactor.util.concurrent.Queues;

/** What a {@link DuplicatingSource} has still to see done. */
final class Backlog<T> {

    private final Crashes crashes;
    private final Sinks.Many<Sent<T>> queue = Sinks.unsafe()
            .many()
            .unicast()
            .onBackpressureBuffer(Queues.<Sent<T>>unboundedMultiproducer().get()); // From any number of threads.
    private final Queue<Failure> deadLetters = new ConcurrentLinkedQueue<>();
    private final AtomicLong open;
    private final LongAdder delivered = new LongAdder();

    Backlog(List<Sent<T>> all, Crashes crashes) {
        this.crashes = crashes;
        this.open = new AtomicLong(all.size());
        all.forEach(this::enqueue);
        if (all.isEmpty()) {
            queue.emitComplete(Sinks.EmitFailureHandler.FAIL_FAST);
        }
    }

    Flux<Delivery<T>> deliveries() {
        return queue.asFlux().map(this::deliver);
    }

    private Delivery<T> deliver(Sent<T> sent) {
        delivered.increment();
        return new Handed(sent);
    }

    private void enqueue(Sent<T> sent) {
        queue.emitNext(sent, Sinks.EmitFailureHandler.FAIL_FAST);
    }

    private void done() {
        if (open.decrementAndGet() == 0) {
            queue.emitComplete(Sinks.EmitFailureHandler.FAIL_FAST);
        }
    }

    private void deadLetter(Failure failure) {
        deadLetters.add(failure);
        done();
    }

    long delivered() {
        return delivered.sum();
    }

    List<Failure> deadLetters() {
        return List.copyOf(deadLetters);
    }

    /** One delivery of a copy. It goes back into the queue once, if it is lost, given back, or its acknowledgement does not arrive. */
    private final class Handed implements Delivery<T> {

        private final Sent<T> sent;
        private final AtomicBoolean over = new AtomicBoolean();
        private final boolean lost = crashes.happenAt(Step.BEFORE_CLAIM);

        Handed(Sent<T> sent) {
            this.sent = sent;
        }

        @Override
        public T payload() {
            return sent.payload();
        }

        @Override
        public @Nullable String id() {
            return sent.id();
        }

        @Override
        public boolean isCurrent() {
            return !lost;
        }

        @Override
        public void handlingEnded() {
            if (lost) {
                again();
            }
        }

        private void again() {
            if (over.compareAndSet(false, true)) {
                enqueue(sent);
            }
        }

        @Override
        public Mono<Void> settle(Settlement settlement) {
            return Mono.defer(() -> {
                if (crashes.happenAt(Step.BEFORE_ACKNOWLEDGEMENT)) {
                    again();
                    return Mono.error(new IllegalStateException("the source is gone before it was told"));
                }
                if (settlement instanceof Settlement.Requeue) {
                    again();
                } else if (over.compareAndSet(false, true)) {
                    if (settlement instanceof Settlement.DeadLetter dead) {
                        deadLetter(dead.failure());
                    } else {
                        done();
                    }
                }
                return Mono.empty();
            });
        }

        @Override
        public String origin() {
            return "a duplicating source";
        }
    }
}
