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

    private final RabbitOptions options;
    private final BrokerConnections connections;
    private final Scheduler thread;
    private @Nullable BrokerConnection connection;
    private @Nullable Channel channel;

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
            BrokerConnection opened = connections.openNow("dead letters");
            connection = opened;
            open = opened.openChannel();
            open.confirmSelect();
            channel = open;
        }
        return open;
    }

    private void abandonChannel() {
        BrokerConnection old = connection;
        connection = null;
        channel = null;
        if (old != null) {
            old.abort(Duration.ofSeconds(1));
        }
    }
}
