package io.onceflux.benchmarks.variant;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.DefaultConsumer;
import com.rabbitmq.client.Envelope;
import io.onceflux.benchmarks.scenario.Orders;
import io.onceflux.benchmarks.scenario.Site;
import java.io.IOException;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/** Receives and acknowledges many at a time, with the broker's own client, and does nothing else: what is left for everybody. */
final class BareRabbit extends FromBroker {

    private final Case what;
    private final Site site;
    private final BrokerQueue queue;
    private @Nullable Connection connection;

    BareRabbit(Case what, Site site) {
        this(what, site, new BrokerQueue(site, new Orders(what.duplicates())));
    }

    private BareRabbit(Case what, Site site, BrokerQueue queue) {
        super(queue);
        this.what = what;
        this.site = site;
        this.queue = queue;
    }

    @Override
    void connect() {
        try {
            Connection opened = BrokerQueue.factory(site).newConnection("benchmark-consumer");
            connection = opened;
            Channel channel = opened.createChannel();
            channel.basicQos(2 * what.lanes() * what.batch()); // As many as OnceFlux has in flight.
            channel.basicConsume(site.queue(), false, new Receiver(channel, queue.published() - doneSoFar()));
        } catch (IOException | TimeoutException e) {
            throw new IllegalStateException("the queue could not be consumed", e);
        }
    }

    @Override
    void disconnect() {
        Connection open = connection;
        if (open != null) {
            try {
                open.close();
            } catch (IOException e) {
                throw new IllegalStateException("the connection could not be closed", e);
            }
        }
    }

    private final class Receiver extends DefaultConsumer {

        private final long expected;
        private long received;

        Receiver(Channel channel, long expected) {
            super(channel);
            this.expected = expected;
        }

        @Override
        public void handleDelivery(String tag, Envelope envelope, BasicProperties properties, byte[] body)
                throws IOException {
            received++;
            if (received % what.batch() == 0 || received == expected) {
                getChannel().basicAck(envelope.getDeliveryTag(), true);
            }
            oneDone();
        }
    }
}
