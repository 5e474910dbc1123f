package io.onceflux.outbox;

import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/** Whether a relay is to end, and when it has: its run, and the last of the batches that were taken in it. */
final class RelayStop {

    private Sinks.Empty<Void> asked = Sinks.empty();
    private Sinks.Empty<Void> ended = completed();
    private volatile boolean isAsked;
    private boolean isRunning;
    private int openBatches;

    private static Sinks.Empty<Void> completed() {
        Sinks.Empty<Void> sink = Sinks.empty();
        complete(sink);
        return sink;
    }

    private static void complete(Sinks.Empty<Void> sink) {
        sink.emitEmpty((signal, result) -> result == Sinks.EmitResult.FAIL_NON_SERIALIZED);
    }

    /** A run begins; false if one is under way, or has not given back all that it had. */
    synchronized boolean begin() {
        if (isRunning || openBatches > 0) {
            return false;
        }
        asked = Sinks.empty();
        ended = Sinks.empty();
        isAsked = false;
        isRunning = true;
        return true;
    }

    synchronized void batchBegins() {
        openBatches++;
    }

    void batchEnded() {
        completeIfDone(() -> openBatches--);
    }

    /** Nothing more is taken in this run. */
    void end() {
        completeIfDone(() -> isRunning = false);
    }

    /** Whoever waits for the end goes on outside of the lock. */
    private void completeIfDone(Runnable change) {
        Sinks.Empty<Void> done;
        synchronized (this) {
            change.run();
            if (isRunning || openBatches > 0) {
                return;
            }
            done = ended;
        }
        complete(done);
    }

    boolean isAsked() {
        return isAsked;
    }

    synchronized Mono<Void> asked() {
        return asked.asMono();
    }

    /** Asks the run to end, and waits until it has. */
    Mono<Void> ask() {
        return Mono.defer(this::askNow);
    }

    private Mono<Void> askNow() {
        Sinks.Empty<Void> ask;
        Sinks.Empty<Void> end;
        synchronized (this) {
            isAsked = true;
            ask = asked;
            end = ended;
        }
        complete(ask);
        return end.asMono();
    }
}
