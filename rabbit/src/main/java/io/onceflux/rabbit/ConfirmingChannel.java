package io.onceflux.rabbit;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Channel;
import io.onceflux.rabbit.ConfirmedPublish.UnroutableException;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;
import org.jspecify.annotations.Nullable;
import reactor.core.Disposable;
import reactor.core.publisher.MonoSink;

/**
 * Publishes mandatory messages, many before the first is confirmed. Its calls come from one thread and may block; confirmations come on the
 * client's.
 */
final class ConfirmingChannel {

    private static final Duration ABORT_LIMIT = Duration.ofSeconds(1);

    private final BrokerConnection connection;
    private final Channel channel;
    private final ConcurrentNavigableMap<Long, Published> unconfirmed = new ConcurrentSkipListMap<>();

    private ConfirmingChannel(BrokerConnection connection, Channel channel) {
        this.connection = connection;
        this.channel = channel;
    }

    /** A message without its confirmation. */
    private static final class Published {
        final String messageId;
        final String where;
        final MonoSink<Void> caller;
        volatile @Nullable String returned;

        Published(String messageId, String where, MonoSink<Void> caller) {
            this.messageId = messageId;
            this.where = where;
            this.caller = caller;
        }
    }

    static ConfirmingChannel on(BrokerConnection connection) throws IOException {
        try {
            ConfirmingChannel made = new ConfirmingChannel(connection, connection.openChannel());
            made.listen();
            return made;
        } catch (IOException | RuntimeException e) {
            connection.abort(ABORT_LIMIT);
            throw e;
        }
    }

    private void listen() throws IOException {
        channel.addReturnListener(
                message -> returned(String.valueOf(message.getProperties().getMessageId()), message.getReplyText()));
        channel.addConfirmListener((tag, multiple) -> settle(tag, multiple, null), (tag, multiple) -> {
            settle(tag, multiple, new IOException("the broker refused the message (basic.nack)"));
        });
        channel.addShutdownListener(cause -> settle(
                Long.MAX_VALUE, true, new IOException("the connection ended before the message was confirmed", cause)));
        channel.confirmSelect();
    }

    boolean isOpen() {
        return channel.isOpen();
    }

    /** Whether the properties fit into a frame: the client would close the channel over it. */
    boolean fits(BasicProperties properties, int bodySize) throws IOException {
        int largest = connection.client().getFrameMax();
        return largest == 0 || properties.toFrame(0, bodySize).size() <= largest;
    }

    /**
     * Publishes. What goes wrong is an error of the caller's.
     *
     * @param properties with a message id
     * @param limit for the client to take it, which a broker that is short of memory may not let it
     */
    void publish(
            String exchange,
            String routingKey,
            BasicProperties properties,
            byte[] body,
            Duration limit,
            MonoSink<Void> caller)
            throws IOException {
        long number = channel.getNextPublishSeqNo();
        String where = "exchange '%s' with routing key '%s'".formatted(exchange, routingKey);
        unconfirmed.put(number, new Published(String.valueOf(properties.getMessageId()), where, caller));
        Disposable late = connection.cutAfter(limit);
        try {
            channel.basicPublish(exchange, routingKey, true, properties, body);
        } catch (IOException | RuntimeException e) {
            unconfirmed.remove(number);
            throw e;
        } finally {
            late.dispose();
        }
    }

    /** It comes before the confirmation, and without its number. */
    private void returned(String messageId, String reason) {
        unconfirmed.values().stream()
                .filter(one -> one.messageId.equals(messageId) && one.returned == null)
                .findFirst()
                .ifPresent(one -> one.returned = reason);
    }

    private void settle(long number, boolean multiple, @Nullable IOException error) {
        var settled = multiple ? unconfirmed.headMap(number, true) : unconfirmed.subMap(number, true, number, true);
        while (true) {
            var first = settled.pollFirstEntry();
            if (first == null) {
                return;
            }
            Published published = first.getValue();
            String returned = published.returned;
            if (error != null) {
                published.caller.error(error);
            } else if (returned != null) {
                published.caller.error(new UnroutableException(
                        "no queue takes messages published to %s (%s)".formatted(published.where, returned)));
            } else {
                published.caller.success();
            }
        }
    }

    /** Blocks for a second at most. */
    void abandon() {
        connection.abort(ABORT_LIMIT);
    }
}
