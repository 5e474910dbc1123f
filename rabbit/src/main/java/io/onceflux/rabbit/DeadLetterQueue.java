package io.onceflux.rabbit;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.GetResponse;
import java.io.IOException;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.Disposable;
import reactor.core.publisher.SynchronousSink;
import reactor.core.scheduler.Scheduler;

/**
 * A queue of dead letters that is being looked through. What is taken and not given back to its own queue is not acknowledged, so
 * that the broker puts it back into its place when this is closed. Every call blocks, and comes from one thread.
 */
final class DeadLetterQueue {

    private static final Logger log = LoggerFactory.getLogger(DeadLetterQueue.class);
    private static final Duration CLOSING = Duration.ofSeconds(5);
    private static final long ALL = 0;

    private final RabbitOptions options;
    private final String queue;
    private final Scheduler thread;
    private final BrokerConnection connection;
    private final Channel channel;
    private long left;

    private DeadLetterQueue(
            RabbitOptions options,
            String queue,
            Scheduler thread,
            BrokerConnection connection,
            Channel channel,
            long left) {
        this.options = options;
        this.queue = queue;
        this.thread = thread;
        this.connection = connection;
        this.channel = channel;
        this.left = left;
    }

    /** What comes in later is left alone: a message that fails again at once would be replayed without an end. */
    static DeadLetterQueue open(RabbitOptions options, String queue, Scheduler thread) throws IOException {
        BrokerConnection connection = new BrokerConnections(options).openNow("dead letters");
        try {
            Channel channel = connection.openChannel();
            channel.confirmSelect();
            long count = channel.queueDeclarePassive(queue).getMessageCount();
            return new DeadLetterQueue(options, queue, thread, connection, channel, count);
        } catch (IOException | RuntimeException e) {
            connection.abort(Duration.ofSeconds(1));
            if (Refusals.isAbout(e, Refusals.NOT_FOUND)) {
                throw new IOException("queue '%s' does not exist at %s".formatted(queue, options.broker()), e);
            }
            throw notRead(options, queue, e);
        }
    }

    /** The client's own exception says nothing. */
    private static IOException notRead(RabbitOptions options, String queue, Exception why) {
        return new IOException(
                "queue '%s' at %s could not be read: %s".formatted(queue, options.broker(), Refusals.wordsOf(why)),
                why);
    }

    Scheduler thread() {
        return thread;
    }

    void next(SynchronousSink<KeptMessage> sink) {
        try {
            GetResponse response = left-- > 0 ? channel.basicGet(queue, false) : null;
            if (response == null) {
                sink.complete();
            } else {
                sink.next(new KeptMessage(
                        new Delivery(response.getEnvelope(), response.getProps(), response.getBody()),
                        options.queue(),
                        deadLetterQueues()));
            }
        } catch (IOException | RuntimeException e) {
            sink.error(notRead(options, queue, e));
        }
    }

    void giveBack(KeptMessage message) throws IOException {
        ConfirmedPublish.publish(
                connection,
                channel,
                "",
                message.cameFrom(),
                message.original(),
                message.body(),
                options.confirmLimit());
        channel.basicAck(message.deliveryTag(), false);
    }

    private Set<String> deadLetterQueues() {
        return options.deadLetterExchange().isEmpty()
                ? new HashSet<>(List.of(queue, options.deadLetterRoutingKey()))
                : Set.of(queue);
    }

    /** What is given back in so many words costs no delivery from RabbitMQ 4.3 on; to earlier ones it is all the same. */
    void close() {
        Disposable late = connection.cutAfter(CLOSING);
        try {
            channel.basicNack(ALL, true, true);
        } catch (IOException | RuntimeException e) {
            log.debug("dead letters were not given back; the broker takes them back", e);
        } finally {
            late.dispose();
        }
        connection.abort(CLOSING);
    }
}
