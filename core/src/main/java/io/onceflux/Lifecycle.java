package io.onceflux;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/** Whether a consumer runs, is asked to stop, or is cut off; and what of it is still running. */
final class Lifecycle {

    private final Sinks.Empty<Void> stop = Sinks.empty();
    private final Sinks.Empty<Void> cut = Sinks.empty();
    private final AtomicBoolean stopAsked = new AtomicBoolean();
    private final AtomicBoolean cutAsked = new AtomicBoolean();
    private final AtomicBoolean stopping = new AtomicBoolean();
    private final Count running = new Count();

    boolean isStopping() {
        return stopping.get();
    }

    boolean isStopAsked() {
        return stopAsked.get();
    }

    /** Completes when the consumer is asked to stop. */
    Mono<Void> stopRequested() {
        return stop.asMono();
    }

    /** Completes when the limit on stopping has passed: whatever still runs is cancelled. */
    Mono<Void> cutOff() {
        return cut.asMono();
    }

    /** Counts a subscription or a direct call as running; false if it comes too late, because of {@link #stop}. */
    boolean begin() {
        running.up(); // Before it is asked, so that either this sees the stop or the stop sees this.
        if (isStopping()) {
            running.down();
            return false;
        }
        return true;
    }

    void ended() {
        running.down();
    }

    /** Counts something as running until what is returned is run, for the first time. */
    Runnable closing() {
        running.up();
        AtomicBoolean closed = new AtomicBoolean();
        return () -> {
            if (closed.compareAndSet(false, true)) {
                running.down();
            }
        };
    }

    Mono<Void> stop(Duration limit) {
        return Mono.defer(() -> {
            // Sources first: they end the intake before any lane gives a message back.
            emitOnce(stopAsked, stop);
            stopping.set(true);
            return running.whenZero().timeout(limit, Mono.defer(() -> {
                emitOnce(cutAsked, cut);
                return running.whenZero();
            }));
        });
    }

    private static void emitOnce(AtomicBoolean asked, Sinks.Empty<Void> sink) {
        if (asked.compareAndSet(false, true)) {
            sink.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);
        }
    }

    /** A count that can be waited for to become zero. */
    static final class Count {

        private int count;
        private Sinks.Empty<Void> zero = Sinks.empty();

        synchronized void up() {
            count++;
        }

        void down() {
            Sinks.Empty<Void> reached = null;
            synchronized (this) {
                if (--count == 0) {
                    reached = zero;
                    zero = Sinks.empty();
                }
            }
            if (reached != null) {
                reached.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);
            }
        }

        Mono<Void> whenZero() {
            return Mono.defer(() -> {
                synchronized (this) {
                    return count == 0 ? Mono.empty() : zero.asMono();
                }
            });
        }
    }
}
