package io.onceflux.rabbit;

import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.PossibleAuthenticationFailureException;
import io.onceflux.InvalidSetupException;
import java.io.IOException;
import java.util.concurrent.TimeoutException;

/** Opens connections that do not recover by themselves: what depends on one is opened anew with it. */
final class BrokerConnections {

    private final ConnectionFactory factory;
    private final RabbitOptions options;

    BrokerConnections(RabbitOptions options) {
        this.factory = options.connectionFactory().clone();
        this.factory.setAutomaticRecoveryEnabled(false);
        this.factory.setTopologyRecoveryEnabled(false);
        this.options = options;
    }

    /**
     * Blocks.
     *
     * @throws InvalidSetupException if the broker refuses the login
     */
    Connection openNow(String purpose) throws IOException {
        try {
            return factory.newConnection("onceflux " + options.queue() + " " + purpose);
        } catch (TimeoutException e) {
            throw new IOException("the broker did not answer in time", e);
        } catch (IOException e) {
            if (refusesLogin(e)) {
                throw new InvalidSetupException(
                        "RabbitMQ at %s refuses the login: check user, password and virtual host of the ConnectionFactory."
                                .formatted(options.broker()),
                        e);
            }
            throw e;
        }
    }

    private static boolean refusesLogin(IOException error) {
        return error instanceof PossibleAuthenticationFailureException
                || Refusals.isAbout(error, Refusals.NOT_ALLOWED)
                || Refusals.isAbout(error, Refusals.ACCESS_REFUSED);
    }
}
