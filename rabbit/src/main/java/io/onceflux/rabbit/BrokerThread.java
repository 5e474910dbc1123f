package io.onceflux.rabbit;

import java.util.concurrent.Executors;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/** A thread of its own for calls to the broker, which block and must not overlap. It keeps no process alive. */
final class BrokerThread {

    private BrokerThread() {}

    static Scheduler start(String name) {
        return Schedulers.fromExecutorService(
                Executors.newSingleThreadExecutor(task -> {
                    Thread thread = new Thread(task, name);
                    thread.setDaemon(true);
                    return thread;
                }),
                name);
    }
}
