package io.onceflux.chaos;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ShutdownSignalException;
import io.onceflux.chaos.consumer.Copy;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * Publishes in bursts, directly and not through the proxy. A burst that was not confirmed is published again under the same
 * ids, so that some of it may be in the queue twice. Each publication is a copy with a number of its own.
 */
final class Producer implements AutoCloseable {

    private static final int BURST = 40;
    private static final long CONFIRM_MILLIS = 3_000;
    private static final long AGAIN_MILLIS = 300;

    private final BrokerQueue queue;
    private final ExecutorService sending = Executors.newSingleThreadExecutor(work -> {
        Thread thread = new Thread(work, "chaos-producer");
        thread.setDaemon(true);
        return thread;
    });
    private final Copies copies = new Copies();
    private @Nullable Connection connection;
    private @Nullable Channel channel;

    Producer(BrokerQueue queue) {
        this.queue = queue;
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
        AtomicBoolean returned = new AtomicBoolean();
        List<Copy> sent = new ArrayList<>();
        try {
            Channel open = openChannel();
            open.clearReturnListeners();
            open.addReturnListener(message -> returned.set(true));
            for (Message message : burst) {
                Copy copy = copies.next(message.id());
                sent.add(copy);
                BasicProperties properties = new BasicProperties.Builder()
                        .messageId(message.id())
                        .headers(Map.of(Copy.HEADER, copy.number()))
                        .deliveryMode(2)
                        .build();
                open.basicPublish("", queue.name(), true, properties, message.body());
            }
            open.waitForConfirmsOrDie(CONFIRM_MILLIS);
        } catch (IOException | TimeoutException | ShutdownSignalException e) {
            abandon();
            return false;
        }
        if (returned.get()) { // Confirmed too, but there was no queue to take it.
            return false;
        }
        copies.confirm(sent);
        return true;
    }

    private Channel openChannel() throws IOException, TimeoutException {
        Channel open = channel;
        if (open == null || !open.isOpen()) {
            Connection opened = queue.connect("producer");
            connection = opened;
            open = opened.createChannel();
            open.confirmSelect();
            channel = open;
        }
        return open;
    }

    private void abandon() {
        Connection old = connection;
        channel = null;
        connection = null;
        if (old != null) {
            old.abort(1_000);
        }
    }

    @Override
    public void close() {
        sending.shutdownNow();
    }
}
