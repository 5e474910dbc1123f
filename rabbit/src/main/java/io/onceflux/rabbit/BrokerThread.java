package io.onceflux.rabbit;

import java.util.concurrent.ScheduledThreadPoolExecutor;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/** A thread of its own for calls to the broker, which block and must not overlap. It keeps no process alive. */
final class BrokerThread {

    private BrokerThread() {}

    /**
     * An event loop asks, and the queue between has a lock. It is the one of Reactor's own schedulers, which BlockHound lets pass;
     * stopped at any other by a user's BlockHound, the event loop would leave the call in the queue and this thread asleep.
     */
    static Scheduler start(String name) {
        return Schedulers.fromExecutorService(
                new ScheduledThreadPoolExecutor(1, task -> {
                    Thread thread = new Thread(task, name);
                    thread.setDaemon(true);
                    return thread;
                }),
                name);
    }
}
