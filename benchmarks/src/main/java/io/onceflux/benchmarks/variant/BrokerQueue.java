package io.onceflux.benchmarks.variant;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.MessageProperties;
import io.onceflux.benchmarks.scenario.Orders;
import io.onceflux.benchmarks.scenario.Site;
import java.io.IOException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** A durable classic queue with persistent messages, filled before it is consumed. */
final class BrokerQueue implements Backlog {

    private static final int UNCONFIRMED = 1_000;
    private static final long CONFIRM_MILLIS = 30_000;

    private final String name;
    private final Orders orders;
    private final Connection connection;
    private final Channel channel;
    private long published;

    BrokerQueue(Site site, Orders orders) {
        this.name = site.queue();
        this.orders = orders;
        try {
            connection = factory(site).newConnection("benchmark-producer");
            channel = connection.createChannel();
            channel.confirmSelect();
            channel.queueDeclare(name, true, false, false, null);
            channel.queueDeclare(name + ".dlq", true, false, false, null);
        } catch (IOException | TimeoutException e) {
            throw new IllegalStateException("the queue could not be made", e);
        }
    }

    static ConnectionFactory factory(Site site) {
        ConnectionFactory factory = new ConnectionFactory();
        try {
            factory.setUri(site.rabbitUri());
            factory.setAutomaticRecoveryEnabled(false); // As Spring and OnceFlux want it: they have their own.
        } catch (Exception e) {
            throw new IllegalArgumentException("the broker's address is not usable", e);
        }
        return factory;
    }

    @Override
    public void fill(long messages) {
        try {
            for (long i = 1; i <= messages; i++) {
                byte[] body = orders.message(published++).toJson();
                channel.basicPublish("", name, MessageProperties.PERSISTENT_BASIC, body);
                if (i % UNCONFIRMED == 0 || i == messages) {
                    channel.waitForConfirmsOrDie(CONFIRM_MILLIS);
                }
            }
        } catch (IOException | InterruptedException | TimeoutException e) {
            throw new IllegalStateException("the queue could not be filled", e);
        }
    }

    @Override
    public void requireEmpty() {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(10);
        long left = 0;
        try {
            // The broker puts back what the last consumer left unacknowledged only when it has seen its end.
            do {
                left = channel.messageCount(name) + channel.messageCount(name + ".dlq");
                TimeUnit.MILLISECONDS.sleep(200);
            } while (channel.consumerCount(name) > 0 && System.nanoTime() < deadline);
            left = channel.messageCount(name) + channel.messageCount(name + ".dlq");
        } catch (IOException | InterruptedException e) {
            throw new IllegalStateException("the queue could not be looked at", e);
        }
        if (left > 0) {
            throw new IllegalStateException(left + " messages are left in " + name);
        }
    }

    @Override
    public long published() {
        return published;
    }

    @Override
    public long distinct() {
        return orders.distinct(published);
    }

    @Override
    public void close() {
        try {
            channel.queueDelete(name);
            channel.queueDelete(name + ".dlq");
            connection.close();
        } catch (IOException e) {
            throw new IllegalStateException("the queue could not be deleted", e);
        }
    }
}
