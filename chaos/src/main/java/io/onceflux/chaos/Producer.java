package io.onceflux.chaos;

import io.onceflux.chaos.consumer.Copy;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * Publishes in bursts, directly and not through the proxy. A burst that was not confirmed is published again under the same
 * ids, so that some of it may be in the queue twice, unless its outlet sees to that. Each publication is a copy with a number of its own.
 */
final class Producer implements AutoCloseable {

    private static final int BURST = 40;
    private static final long AGAIN_MILLIS = 300;

    private final Outlet outlet;
    private final ExecutorService sending = Executors.newSingleThreadExecutor(work -> {
        Thread thread = new Thread(work, "chaos-producer");
        thread.setDaemon(true);
        return thread;
    });
    private final Copies copies = new Copies();

    Producer(Outlet outlet) {
        this.outlet = outlet;
    }

    /** Queues the messages up, to be sent within this time if the broker is there. */
    void publish(List<Message> messages, Duration within) {
        long pause = within.toMillis() * BURST / Math.max(1, messages.size());
        for (int from = 0; from < messages.size(); from += BURST) {
            List<Message> burst = messages.subList(from, Math.min(from + BURST, messages.size()));
            sending.execute(() -> send(burst, pause));
        }
    }

    /** Whether everything was sent and confirmed in time. No more can be published. */
    boolean finish(Duration limit) throws InterruptedException {
        sending.shutdown();
        return sending.awaitTermination(limit.toMillis(), TimeUnit.MILLISECONDS);
    }

    /** What was sent, and what of it the broker has taken responsibility for. */
    Copies copies() {
        return copies;
    }

    private void send(List<Message> burst, long pause) {
        try {
            while (!isConfirmed(burst)) {
                Thread.sleep(AGAIN_MILLIS);
            }
            Thread.sleep(pause);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private boolean isConfirmed(List<Message> burst) throws InterruptedException {
        List<Copy> sent =
                burst.stream().map(message -> copies.next(message.id())).toList();
        if (!outlet.send(burst, sent)) {
            return false;
        }
        copies.confirm(sent);
        return true;
    }

    @Override
    public void close() {
        sending.shutdownNow();
        outlet.close();
    }
}
