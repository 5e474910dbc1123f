package io.onceflux.rabbit;

import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import java.io.IOException;
import java.util.concurrent.TimeoutException;

/** Opens connections that do not recover by themselves: what depends on one is opened anew with it. */
final class BrokerConnections {

    private final ConnectionFactory factory;
    private final String queue;

    BrokerConnections(RabbitOptions options) {
        this.factory = options.connectionFactory().clone();
        this.factory.setAutomaticRecoveryEnabled(false);
        this.factory.setTopologyRecoveryEnabled(false);
        this.queue = options.queue();
    }

    /** Blocks. */
    Connection openNow(String purpose) throws IOException, TimeoutException {
        return factory.newConnection("onceflux " + queue + " " + purpose);
    }
}
