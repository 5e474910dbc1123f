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
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeoutException;

/** A queue of RabbitMQ, or of the broker that stands in for it. */
final class RabbitQueue implements Broker {

    private static final long CONFIRM_LIMIT_MILLIS = 30_000;
    private static final ObjectMapper JSON = new ObjectMapper();

    private final String queue;
    private final String uri;
    private final Connection connection;
    private final Channel shop;

    private RabbitQueue(String queue, String uri, Connection connection, Channel shop) {
        this.queue = queue;
        this.uri = uri;
        this.connection = connection;
        this.shop = shop;
    }

    static RabbitQueue connect(String queue, String uri) throws Exception {
        ConnectionFactory factory = new ConnectionFactory();
        factory.setUri(uri);
        factory.setAutomaticRecoveryEnabled(false);
        Connection connection = factory.newConnection("onceflux demo");
        Channel shop = connection.createChannel();
        shop.confirmSelect();
        return new RabbitQueue(queue, uri, connection, shop);
    }

    @Override
    public Map<String, String> settings(Contender contender) {
        return Map.of(contender.property("queue"), queue, contender.property("rabbit.uri"), uri);
    }

    @Override
    public void publish(List<OrderCompleted> orders) throws Exception {
        for (OrderCompleted order : orders) {
            shop.basicPublish("", queue, MessageProperties.PERSISTENT_BASIC, JSON.writeValueAsBytes(order));
        }
        shop.waitForConfirmsOrDie(CONFIRM_LIMIT_MILLIS);
    }

    /** Those that a consumer has in hand may not be counted. */
    @Override
    public long backlog() throws IOException, TimeoutException {
        return depth(queue);
    }

    @Override
    public long deadLetters() throws IOException, TimeoutException {
        return depth(deadLetterQueue());
    }

    private long depth(String name) throws IOException, TimeoutException {
        return look(name).map(AMQP.Queue.DeclareOk::getMessageCount).orElse(0);
    }

    @Override
    public int consumers() throws IOException, TimeoutException {
        return look(queue).map(AMQP.Queue.DeclareOk::getConsumerCount).orElse(0);
    }

    @Override
    public boolean keepsWhatIsDone() {
        return false;
    }

    @Override
    public void rewind() {
        throw new UnsupportedOperationException("a queue forgets what is done");
    }

    private String deadLetterQueue() {
        return queue + ".dlq";
    }

    private void deleteIfPresent(String name) throws IOException, TimeoutException {
        if (look(name).isPresent()) {
            try (Channel channel = connection.createChannel()) {
                channel.queueDelete(name);
            }
        }
    }

    /** Empty if there is no such queue; that closes the channel, so every look has its own. */
    private Optional<AMQP.Queue.DeclareOk> look(String name) throws IOException, TimeoutException {
        Channel channel = connection.createChannel();
        try {
            AMQP.Queue.DeclareOk found = channel.queueDeclarePassive(name);
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
    public String toString() {
        return "queue";
    }

    @Override
    public void close() throws IOException {
        try {
            deleteIfPresent(queue);
            deleteIfPresent(deadLetterQueue());
        } catch (TimeoutException e) {
            throw new IOException(e);
        } finally {
            connection.abort(5_000);
        }
    }
}
