package io.onceflux.rabbit;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.ShutdownSignalException;
import io.onceflux.InvalidSetupException;
import java.io.IOException;
import java.time.Duration;
import java.util.UUID;
import java.util.concurrent.TimeoutException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Whether the user may publish to the default exchange, where dead letters go unless another is named. Only publishing tells,
 * so a message is published with a routing key that no queue has, and the broker drops it. Another exchange may route any
 * key, so it is not asked.
 */
final class DeadLetterRight {

    private static final Logger log = LoggerFactory.getLogger(DeadLetterRight.class);

    /** A broker that is short of memory answers when it no longer is; who waits for dead letters so long need not wait for the start. */
    private static final Duration LONGEST_WAIT = Duration.ofSeconds(5);

    private final RabbitOptions options;
    private final BrokerConnections connections;

    DeadLetterRight(RabbitOptions options, BrokerConnections connections) {
        this.options = options;
        this.connections = connections;
    }

    /**
     * Blocks for some seconds at most. On a connection of its own, because a broker that is short of memory stops
     * reading from connections that publish; whether the right is there shows then when it is needed.
     *
     * @throws InvalidSetupException if the right is missing
     */
    void require() throws IOException {
        if (!options.deadLetterExchange().isEmpty()) {
            return;
        }
        BrokerConnection connection = connections.openNow("right to publish dead letters");
        try {
            publishToNobody(connection);
        } catch (TimeoutException e) {
            log.debug("the broker did not say whether dead letters may be published", e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted while waiting for the broker's answer", e);
        } catch (IOException | ShutdownSignalException e) {
            if (Refusals.isAbout(e, Refusals.ACCESS_REFUSED)) {
                throw new InvalidSetupException(
                        ("The user has no right to write to exchange 'amq.default' at %s, through which dead letters go to queue"
                                        + " '%s'. Grant it, or name another exchange with deadLettersTo(exchange, routingKey)."
                                        + " RabbitMQ said: %s")
                                .formatted(options.broker(), options.deadLetterRoutingKey(), Refusals.wordsOf(e)),
                        e);
            }
            throw e;
        } finally {
            connection.abort(Duration.ofSeconds(1));
        }
    }

    private void publishToNobody(BrokerConnection connection)
            throws IOException, InterruptedException, TimeoutException {
        Channel channel = connection.openChannel();
        channel.confirmSelect();
        channel.basicPublish("", UUID.randomUUID().toString(), null, new byte[0]);
        channel.waitForConfirms(Math.min(options.confirmLimit().toMillis(), LONGEST_WAIT.toMillis()));
    }
}
