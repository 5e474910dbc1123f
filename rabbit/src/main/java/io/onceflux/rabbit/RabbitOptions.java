package io.onceflux.rabbit;

import com.rabbitmq.client.ConnectionFactory;
import io.onceflux.InvalidSetupException;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * What to consume, and how. Immutable; start with {@link #queue}. Names have at most 255 bytes, durations 365 days.
 *
 * @param queue the queue to consume; classic or quorum, a stream is refused
 * @param connectionFactory the client's own factory, with address, credentials, TLS, heartbeat and timeouts. It is copied;
 *     automatic recovery is switched off in the copy, because deliveries subscribe again themselves, and the broker's answers
 *     are waited for no longer than 30 s (channelRpcTimeout). Where the largest body that it takes (maxInboundMessageBodySize) is
 *     the client's own default of 64 MiB, the copy takes all that RabbitMQ does, 512 MiB; each needs that memory. With a lower one of
 *     yours, a message that is larger ends the connection, each time that it is delivered, and stops its queue.
 * @param prefetch how many unacknowledged messages the broker sends at most, 1 to 65,535; null, the default, for the
 *     {@code maxInFlight} of the consumer that subscribes
 * @param messageIdHeader the header that has the message's id; null, the default, for the property {@code message-id}. An id that
 *     is not UTF-8 makes a dead letter, and so does U+FFFD in the property: the client puts it in the place of what it cannot decode
 * @param deadLetterExchange where dead letters are published; default the default exchange
 * @param deadLetterRoutingKey with which routing key; default {@code <queue>.dlq}
 * @param declaration how to declare the queue and {@code <queue>.dlq}; null, the default, if somebody else does
 * @param minBackoff the pause before the first new subscription after one has ended; it doubles up to {@code maxBackoff}, until a
 *     delivery is settled or a subscription has lasted for 5 s; default 200 ms
 * @param maxBackoff the longest such pause; default 10 s
 * @param startLimit how long the broker may be away at the start, before the start fails; default 1 minute
 * @param confirmLimit how long the broker may take to confirm a dead letter, before it is tried again; default 5 s.
 *     What is confirmed later is there twice
 * @param consumerTimeout the broker's {@code consumer_timeout}: after it, the broker takes an unacknowledged message back.
 *     Only compared with what the consumer may need; default 30 minutes, as the broker's
 */
public record RabbitOptions(
        String queue,
        ConnectionFactory connectionFactory,
        @Nullable Integer prefetch,
        @Nullable String messageIdHeader,
        String deadLetterExchange,
        String deadLetterRoutingKey,
        @Nullable QueueDeclaration declaration,
        Duration minBackoff,
        Duration maxBackoff,
        Duration startLimit,
        Duration confirmLimit,
        Duration consumerTimeout) {

    private static final int LARGEST_PREFETCH = 65_535;

    /** Checks every part. */
    public RabbitOptions {
        Checked.filled("queue", queue);
        Checked.present("connectionFactory", connectionFactory);
        Checked.that(
                prefetch == null || (prefetch > 0 && prefetch <= LARGEST_PREFETCH),
                "prefetch must be from 1 to " + LARGEST_PREFETCH + ", but is " + prefetch);
        if (messageIdHeader != null) {
            Checked.filled("messageIdHeader", messageIdHeader);
        }
        Checked.name("deadLetterExchange", deadLetterExchange);
        Checked.name("deadLetterRoutingKey", deadLetterRoutingKey);
        if (deadLetterExchange.isEmpty()) { // Which takes the routing key as the name of a queue.
            Checked.filled("deadLetterRoutingKey", deadLetterRoutingKey);
            Checked.that(
                    !deadLetterRoutingKey.equals(queue),
                    "deadLetterRoutingKey must not be the queue itself: its dead letters would be consumed again, and again");
        }
        Checked.limit("minBackoff", minBackoff);
        Checked.limit("maxBackoff", maxBackoff);
        Checked.limit("startLimit", startLimit);
        Checked.limit("confirmLimit", confirmLimit);
        Checked.limit("consumerTimeout", consumerTimeout);
        Checked.that(
                minBackoff.compareTo(maxBackoff) <= 0,
                "minBackoff (%s) must not be longer than maxBackoff (%s)".formatted(minBackoff, maxBackoff));
    }

    /** Starts to describe the consumption of a queue. */
    public static Builder queue(String name) {
        return new Builder(name);
    }

    /** The broker, for messages: never with credentials. */
    String broker() {
        return broker(connectionFactory);
    }

    static String broker(ConnectionFactory factory) {
        return factory.getHost() + ":" + factory.getPort()
                + (factory.getVirtualHost().equals("/") ? "" : " vhost " + factory.getVirtualHost());
    }

    /** The source, for messages and health. */
    String source() {
        return "queue '%s' at %s".formatted(queue, broker());
    }

    @Override
    public String toString() {
        return "RabbitOptions[queue " + queue + " at " + broker() + "]";
    }

    /** Makes {@link RabbitOptions}; what each part means is said there. */
    public static final class Builder {

        private final String queue;
        private ConnectionFactory connectionFactory = new ConnectionFactory();
        private @Nullable Integer prefetch;
        private @Nullable String messageIdHeader;
        private String deadLetterExchange = "";
        private String deadLetterRoutingKey;
        private @Nullable QueueDeclaration declaration;
        private Duration minBackoff = Duration.ofMillis(200);
        private Duration maxBackoff = Duration.ofSeconds(10);
        private Duration startLimit = Duration.ofMinutes(1);
        private Duration confirmLimit = Duration.ofSeconds(5);
        private Duration consumerTimeout = Duration.ofMinutes(30);

        private Builder(String queue) {
            this.queue = queue;
            this.deadLetterRoutingKey = queue + ".dlq";
        }

        /** Sets {@link RabbitOptions#connectionFactory}; default: the client's own defaults, guest at localhost. */
        public Builder connectionFactory(ConnectionFactory factory) {
            this.connectionFactory = factory;
            return this;
        }

        /**
         * Sets the address and credentials of the broker, such as {@code amqps://user:password@host/vhost}. What a URI does not
         * allow in user, password or virtual host is percent-encoded; a host whose name has an underscore cannot be named so, but
         * with {@link #connectionFactory}.
         *
         * @throws InvalidSetupException if a part of it cannot be told; the password is not repeated
         */
        public Builder uri(String uri) {
            return connectionFactory(BrokerUri.factory(Checked.present("uri", uri)));
        }

        /** Sets {@link RabbitOptions#prefetch}. */
        public Builder prefetch(int messages) {
            this.prefetch = messages;
            return this;
        }

        /** Takes the message's id from a header: text, bytes that are UTF-8, or a whole number. */
        public Builder messageIdFromHeader(String header) {
            this.messageIdHeader = Checked.present("messageIdHeader", header);
            return this;
        }

        /** Publishes dead letters somewhere else than to {@code <queue>.dlq}. */
        public Builder deadLettersTo(String exchange, String routingKey) {
            this.deadLetterExchange = exchange;
            this.deadLetterRoutingKey = routingKey;
            return this;
        }

        /** Declares the queue and {@code <queue>.dlq} whenever it subscribes. */
        public Builder declare(QueueDeclaration queues) {
            this.declaration = Checked.present("declaration", queues);
            return this;
        }

        /** Sets {@link RabbitOptions#minBackoff} and {@link RabbitOptions#maxBackoff}. */
        public Builder backoff(Duration min, Duration max) {
            this.minBackoff = min;
            this.maxBackoff = max;
            return this;
        }

        /** Sets {@link RabbitOptions#startLimit}. */
        public Builder startLimit(Duration limit) {
            this.startLimit = limit;
            return this;
        }

        /** Sets {@link RabbitOptions#confirmLimit}. */
        public Builder confirmLimit(Duration limit) {
            this.confirmLimit = limit;
            return this;
        }

        /** Sets {@link RabbitOptions#consumerTimeout}. */
        public Builder consumerTimeout(Duration timeout) {
            this.consumerTimeout = timeout;
            return this;
        }

        /**
         * Makes the options.
         *
         * @throws InvalidSetupException with the name of the part that is out of range
         */
        public RabbitOptions build() {
            return new RabbitOptions(
                    queue,
                    connectionFactory,
                    prefetch,
                    messageIdHeader,
                    deadLetterExchange,
                    deadLetterRoutingKey,
                    declaration,
                    minBackoff,
                    maxBackoff,
                    startLimit,
                    confirmLimit,
                    consumerTimeout);
        }
    }
}
