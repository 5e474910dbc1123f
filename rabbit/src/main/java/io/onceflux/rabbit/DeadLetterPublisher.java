package io.onceflux.rabbit;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Delivery;
import io.onceflux.Settlement;
import io.onceflux.rabbit.ConfirmedPublish.UnroutableException;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;

/**
 * Publishes dead letters, mandatory and confirmed, one at a time, on a thread and a connection of its own: a broker that is short
 * of memory stops reading from connections that publish, and must go on reading acknowledgements.
 *
 * <p>Reactor RabbitMQ's {@code Sender} is not used: it tells returned messages by a header that it adds, and that header would
 * become a part of the dead letter.
 */
final class DeadLetterPublisher {

    private static final Duration ABORT_LIMIT = Duration.ofSeconds(1);

    private final RabbitOptions options;
    private final BrokerConnections connections;
    private final Scheduler thread;
    private @Nullable Confirming confirming;

    DeadLetterPublisher(RabbitOptions options, BrokerConnections connections) {
        this.options = options;
        this.connections = connections;
        this.thread = BrokerThread.start("onceflux-rabbit-dead-letters-" + options.queue());
    }

    /**
     * Completes when the broker has stored the dead letter. If it is cancelled before its turn, nothing is published. What has
     * begun goes on to its end, cancelled or not: its confirmation may still come, and to begin again would make a second copy.
     *
     * @param stored whether this message's dead letter is stored; who asks again waits for what has begun, and sees it there
     */
    Mono<Void> publish(Delivery original, Settlement.DeadLetter why, AtomicBoolean stored) {
        return Mono.defer(() -> stored.get()
                ? Mono.empty()
                : BrokerThread.call(thread, () -> {
                    if (!stored.get()) {
                        publishNow(original, why);
                        stored.set(true);
                    }
                }));
    }

    /** Waits for what has begun. */
    Mono<Void> close() {
        return BrokerThread.call(thread, this::abandonChannel);
    }

    Scheduler thread() {
        return thread;
    }

    private void publishNow(Delivery original, Settlement.DeadLetter why) throws IOException {
        try {
            Confirming open = confirming();
            BasicProperties properties = DeadLetterMessage.properties(
                    original, options.queue(), why, open.connection().client().getFrameMax());
            ConfirmedPublish.publish(
                    open.connection(),
                    open.channel(),
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

    private Confirming confirming() throws IOException {
        Confirming open = confirming;
        if (open == null || !open.channel().isOpen()) {
            abandonChannel();
            open = Confirming.on(connections.openNow("dead letters"));
            confirming = open;
        }
        return open;
    }

    private void abandonChannel() {
        Confirming old = confirming;
        confirming = null;
        if (old != null) {
            old.connection().abort(ABORT_LIMIT);
        }
    }

    /** A connection and its one channel. */
    private record Confirming(BrokerConnection connection, Channel channel) {

        static Confirming on(BrokerConnection connection) throws IOException {
            try {
                Channel channel = connection.openChannel();
                channel.confirmSelect();
                return new Confirming(connection, channel);
            } catch (IOException | RuntimeException e) {
                connection.abort(ABORT_LIMIT);
                throw e;
            }
        }
    }
}
