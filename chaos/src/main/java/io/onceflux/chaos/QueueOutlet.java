package io.onceflux.chaos;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ShutdownSignalException;
import io.onceflux.chaos.consumer.Copy;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/** Mandatory and confirmed. */
final class QueueOutlet implements Outlet {

    private static final long CONFIRM_MILLIS = 3_000;

    private final BrokerQueue queue;
    private @Nullable Connection connection;
    private @Nullable Channel channel;

    QueueOutlet(BrokerQueue queue) {
        this.queue = queue;
    }

    @Override
    public boolean send(List<Message> messages, List<Copy> copies) throws InterruptedException {
        AtomicBoolean returned = new AtomicBoolean();
        try {
            Channel open = openChannel();
            open.clearReturnListeners();
            open.addReturnListener(message -> returned.set(true));
            for (int i = 0; i < messages.size(); i++) {
                BasicProperties properties = new BasicProperties.Builder()
                        .messageId(messages.get(i).id())
                        .headers(Map.of(Copy.HEADER, copies.get(i).number()))
                        .deliveryMode(2)
                        .build();
                open.basicPublish(
                        "", queue.name(), true, properties, messages.get(i).body());
            }
            open.waitForConfirmsOrDie(CONFIRM_MILLIS);
        } catch (IOException | TimeoutException | ShutdownSignalException e) {
            close();
            return false;
        }
        return !returned.get(); // Confirmed too, but there was no queue to take it.
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

    @Override
    public void close() {
        Connection old = connection;
        channel = null;
        connection = null;
        if (old != null) {
            old.abort(1_000);
        }
    }
}
