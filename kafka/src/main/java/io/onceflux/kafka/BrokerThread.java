package io.onceflux.kafka;

import java.util.concurrent.Callable;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.publisher.Mono;
import reactor.core.publisher.MonoSink;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/** A thread of its own for calls to the broker that block, made in the order in which they came. It keeps no process alive. */
final class BrokerThread {

    private static final Logger log = LoggerFactory.getLogger(BrokerThread.class);

    private BrokerThread() {}

    /** A scheduled executor, because event loops hand their calls over: Reactor sees to it that its queue does not hold them up. */
    static Scheduler start(String name) {
        return Schedulers.fromExecutorService(
                new ScheduledThreadPoolExecutor(1, task -> {
                    Thread thread = new Thread(task, name);
                    thread.setDaemon(true);
                    return thread;
                }),
                name);
    }

    /**
     * Makes a call when its turn comes. If it is cancelled before, it is not made; once begun it goes on to its end, and is not
     * interrupted.
     */
    static <T> Mono<T> call(Scheduler thread, Callable<T> call) {
        return Mono.create(sink -> {
            AtomicBoolean cancelled = new AtomicBoolean();
            MonoSink<T> caller = sink.onCancel(() -> cancelled.set(true));
            thread.schedule(() -> make(call, caller, cancelled)); // What it returns would interrupt.
        });
    }

    /**
     * Ends the thread once the calls that wait for it have been made. Reactor's own way to do so leaves a thread behind that keeps the
     * process alive for ten seconds.
     */
    static Mono<Void> end(Scheduler thread) {
        return call(thread, () -> true)
                .publishOn(
                        Schedulers.boundedElastic()) // Its own thread would be interrupted, with whoever goes on there.
                .doFinally(end -> thread.dispose())
                .then();
    }

    private static <T> void make(Callable<T> call, MonoSink<T> caller, AtomicBoolean cancelled) {
        if (cancelled.get()) {
            return;
        }
        try {
            caller.success(call.call());
        } catch (Throwable e) { // An Error too, or its caller would wait for a signal that never comes.
            if (cancelled.get()) {
                log.debug("a call to the broker that nobody waits for any more failed", e);
            } else {
                caller.error(e);
            }
        }
    }
}
