package io.onceflux.rabbit;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Channel;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import reactor.core.Disposable;

/** Publishes one message, mandatory and confirmed, and returns only when a queue has it. Blocks. */
final class ConfirmedPublish {

    /** For the wait for the confirmation to end first: it tells better what happened. */
    private static final Duration GRACE = Duration.ofSeconds(1);

    private ConfirmedPublish() {}

    /**
     * Publishes on a channel with confirms of the connection, which nobody else uses meanwhile. After an exception other than that nothing takes
     * the message, the channel must not be used any more: a confirmation may still come.
     *
     * @throws UnroutableException if no queue takes the message
     */
    static void publish(
            BrokerConnection connection,
            Channel confirming,
            String exchange,
            String routingKey,
            BasicProperties properties,
            byte[] body,
            Duration limit)
            throws IOException {
        AtomicReference<@Nullable String> returned = new AtomicReference<>();
        confirming.clearReturnListeners();
        confirming.addReturnListener(message -> returned.set(message.getReplyText()));
        // A broker that is short of memory reads nothing, and a large message then hangs before its confirmation is
        // waited for.
        Disposable late = connection.cutAfter(limit.plus(GRACE));
        try {
            confirming.basicPublish(exchange, routingKey, true, properties, body);
            if (!confirming.waitForConfirms(limit.toMillis())) {
                throw new IOException("the broker refused the message (basic.nack)");
            }
        } catch (TimeoutException e) {
            throw new IOException("the broker did not confirm the message within " + limit, e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted while waiting for the confirmation of a message", e);
        } finally {
            late.dispose();
        }
        if (returned.get() != null) { // A returned message is confirmed too, after it was returned.
            throw new UnroutableException(
                    "no queue takes messages published to exchange '%s' with routing key '%s' (%s)"
                            .formatted(exchange, routingKey, returned.get()));
        }
    }

    /** The broker has no queue for the message; the channel is as good as before. */
    static final class UnroutableException extends IOException {
        UnroutableException(String sentence) {
            super(sentence);
        }
    }
}
