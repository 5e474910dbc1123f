package io.onceflux.examples.demo;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.MessageProperties;
import com.rabbitmq.client.ShutdownSignalException;
import io.onceflux.examples.loyalty.OrderCompleted;
import java.io.IOException;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeoutException;

/** The demo's own connection to the broker: publishes as the shop does, and looks at queues. Blocks. */
final class Broker implements AutoCloseable {

    private static final long CONFIRM_LIMIT_MILLIS = 30_000;
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Connection connection;
    private final Channel shop;

    private Broker(Connection connection, Channel shop) {
        this.connection = connection;
        this.shop = shop;
    }

    static Broker connect(String uri) throws Exception {
        ConnectionFactory factory = new ConnectionFactory();
        factory.setUri(uri);
        factory.setAutomaticRecoveryEnabled(false);
        Connection connection = factory.newConnection("onceflux demo");
        Channel shop = connection.createChannel();
        shop.confirmSelect();
        return new Broker(connection, shop);
    }

    static String deadLetterQueue(String queue) {
        return queue + ".dlq";
    }

    /** Publishes in this order, and returns when the broker has confirmed all. */
    void publish(String queue, List<OrderCompleted> orders) throws Exception {
        for (OrderCompleted order : orders) {
            shop.basicPublish("", queue, MessageProperties.PERSISTENT_BASIC, JSON.writeValueAsBytes(order));
        }
        shop.waitForConfirmsOrDie(CONFIRM_LIMIT_MILLIS);
    }

    /** Messages that wait in the queue; those that a consumer has in hand may not be counted. */
    long depth(String queue) throws IOException, TimeoutException {
        return look(queue).map(AMQP.Queue.DeclareOk::getMessageCount).orElse(0);
    }

    int consumers(String queue) throws IOException, TimeoutException {
        return look(queue).map(AMQP.Queue.DeclareOk::getConsumerCount).orElse(0);
    }

    void deleteIfPresent(String queue) throws IOException, TimeoutException {
        if (look(queue).isPresent()) {
            try (Channel channel = connection.createChannel()) {
                channel.queueDelete(queue);
            }
        }
    }

    /** Empty if there is no such queue; that closes the channel, so every look has its own. */
    private Optional<AMQP.Queue.DeclareOk> look(String queue) throws IOException, TimeoutException {
        Channel channel = connection.createChannel();
        try {
            AMQP.Queue.DeclareOk found = channel.queueDeclarePassive(queue);
            channel.close();
            return Optional.of(found);
        } catch (IOException e) {
            if (e.getCause() instanceof ShutdownSignalException closed
                    && closed.getReason() instanceof AMQP.Channel.Close refusal
                    && refusal.getReplyCode() == AMQP.NOT_FOUND) {
                return Optional.empty();
            }
            throw e;
        }
    }

    @Override
    public void close() {
        connection.abort(5_000);
    }
}
