package io.onceflux.rabbit;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.Delivery;
import io.onceflux.Settlement;
import io.onceflux.rabbit.ConfirmedPublish.UnroutableException;
import java.io.IOException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/**
 * Publishes dead letters, mandatory and confirmed, one at a time, on a thread that may block and on a connection of its own: a broker that is short of
 * memory stops reading from connections that publish, and must go on reading acknowledgements.
 *
 * <p>Reactor RabbitMQ's {@code Sender} is not used: it tells returned messages by a header that it adds, and that header would
 * become a part of the dead letter.
 */
final class DeadLetterPublisher {

    private static final Logger log = LoggerFactory.getLogger(DeadLetterPublisher.class);

    private final RabbitOptions options;
    private final BrokerConnections connections;
    private @Nullable Channel channel;

    DeadLetterPublisher(RabbitOptions options, BrokerConnections connections) {
        this.options = options;
        this.connections = connections;
    }

    /** Completes when the broker has stored the dead letter. */
    Mono<Void> publish(Delivery original, Settlement.DeadLetter why) {
        return Mono.<Void>fromCallable(() -> {
                    publishNow(original, why);
                    return null;
                })
                .subscribeOn(Schedulers.boundedElastic());
    }

    Mono<Void> close() {
        return Mono.<Void>fromRunnable(this::abandonChannel).subscribeOn(Schedulers.boundedElastic());
    }

    private synchronized void publishNow(Delivery original, Settlement.DeadLetter why) throws IOException {
        try {
            Channel confirming = channel();
            BasicProperties properties = DeadLetterMessage.properties(
                    original, options.queue(), why, confirming.getConnection().getFrameMax());
            ConfirmedPublish.publish(
                    confirming,
                    options.deadLetterExchange(),
                    options.deadLetterRoutingKey(),
                    properties,
                    original.getBody(),
                    options.confirmLimit());
        } catch (UnroutableException e) {
            throw e;
        } catch (IOException | RuntimeException e) {
            abandonChannel();
            throw e;
        }
    }

    private Channel channel() throws IOException {
        Channel open = channel;
        if (open == null || !open.isOpen()) {
            abandonChannel();
            open = connections.openNow("dead letters").createChannel();
            if (open == null) {
                throw new IOException("the connection has no channel left");
            }
            open.confirmSelect();
            channel = open;
        }
        return open;
    }

    private synchronized void abandonChannel() {
        Channel old = channel;
        channel = null;
        if (old != null) {
            Connection connection = old.getConnection();
            try {
                connection.abort(1_000);
            } catch (RuntimeException e) {
                log.debug("closing the connection for dead letters failed", e);
            }
        }
    }
}
