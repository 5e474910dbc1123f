package io.onceflux.rabbit;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.ConnectionFactory;
import io.onceflux.PermanentFailure;
import io.onceflux.outbox.OutboxMessage;
import io.onceflux.outbox.Target;
import java.io.IOException;
import java.time.Duration;
import java.util.Date;
import java.util.HashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Mono;
import reactor.core.publisher.MonoSink;
import reactor.core.scheduler.Scheduler;

/**
 * Sends entries of an outbox to an exchange of RabbitMQ: persistent, mandatory and confirmed. One that no queue takes is not sent: the entry
 * stays pending, with the reason, and is tried again.
 *
 * <p>The property {@code message-id} is the idempotency key, so that a consumer of the queue finds duplicates by it; headers are the entry's.
 * A header {@code content-type} becomes the property.
 *
 * <p>It has a connection and a thread of its own, made when the first entry is sent, and again after each failure. {@link #close} ends both.
 */
public final class RabbitTarget implements Target {

    private static final int PERSISTENT = 2;
    private static final String CONTENT_TYPE = "content-type";

    private final BrokerConnections connections;
    private final String exchange;
    private final Function<? super OutboxMessage, String> routingKey;
    private final Duration publishLimit;
    private final Scheduler thread;
    private @Nullable ConfirmingChannel channel;

    private RabbitTarget(
            BrokerConnections connections,
            String exchange,
            Function<? super OutboxMessage, String> routingKey,
            Duration publishLimit) {
        this.connections = connections;
        this.exchange = exchange;
        this.routingKey = routingKey;
        this.publishLimit = publishLimit;
        this.thread = BrokerThread.start("onceflux-rabbit-outbox");
    }

    /**
     * An exchange.
     *
     * @param broker the client's own factory, with address and credentials; it is copied
     * @param name of the exchange; the empty one takes the routing key as the name of a queue
     * @param routingKey makes the routing key of an entry
     */
    public static RabbitTarget exchange(
            ConnectionFactory broker, String name, Function<? super OutboxMessage, String> routingKey) {
        Checked.present("broker", broker);
        Checked.name("exchange", name);
        return new RabbitTarget(
                new BrokerConnections(broker, "outbox"),
                name,
                Checked.present("routingKey", routingKey),
                Duration.ofSeconds(5));
    }

    /** A queue, by the default exchange. */
    public static RabbitTarget queue(ConnectionFactory broker, String name) {
        Checked.filled("queue", name);
        return exchange(broker, "", message -> name);
    }

    /** It goes on in the broker's order of confirmations, and fails with an {@link IOException}. */
    @Override
    public Publisher<Void> send(OutboxMessage message) {
        return Mono.create(sink -> {
            AtomicBoolean cancelled = new AtomicBoolean();
            MonoSink<Void> caller = sink.onCancel(() -> cancelled.set(true));
            thread.schedule(() -> publish(message, caller, cancelled));
        });
    }

    private void publish(OutboxMessage message, MonoSink<Void> caller, AtomicBoolean cancelled) {
        try {
            if (!cancelled.get()) {
                publish(prepare(message), message.payload(), caller, cancelled);
            }
        } catch (RuntimeException e) { // It is this entry's, and harms no other.
            caller.error(new PermanentFailure("the entry cannot be a message of RabbitMQ: " + e, e));
        } catch (Error e) { // Its caller would wait for a signal that never comes.
            caller.error(e);
            throw e;
        }
    }

    private record Prepared(String routingKey, BasicProperties properties) {}

    private Prepared prepare(OutboxMessage message) {
        String key = routingKey.apply(message);
        Checked.name("the routing key", key);
        Checked.name("the idempotency key", message.idempotencyKey());
        message.headers().keySet().forEach(name -> Checked.name("a header's name", name));
        Checked.name(CONTENT_TYPE, message.headers().getOrDefault(CONTENT_TYPE, ""));
        return new Prepared(key, properties(message));
    }

    private void publish(Prepared prepared, byte[] payload, MonoSink<Void> caller, AtomicBoolean cancelled) {
        try {
            ConfirmingChannel open = confirming();
            if (cancelled.get()) { // To connect may take longer than anybody waits: it is sent again then.
                return;
            }
            if (!open.fits(prepared.properties(), payload.length)) {
                caller.error(new PermanentFailure("the entry's headers are too large for a frame of the connection"));
                return;
            }
            open.publish(exchange, prepared.routingKey(), prepared.properties(), payload, publishLimit, caller);
        } catch (IOException | RuntimeException e) {
            abandon();
            caller.error(e);
        }
    }

    private static BasicProperties properties(OutboxMessage message) {
        HashMap<String, Object> headers = new HashMap<>(message.headers());
        Object contentType = headers.remove(CONTENT_TYPE);
        return new BasicProperties.Builder()
                .messageId(message.idempotencyKey())
                .deliveryMode(PERSISTENT)
                .timestamp(Date.from(message.appendedAt()))
                .contentType(contentType == null ? null : contentType.toString())
                .headers(headers)
                .build();
    }

    private ConfirmingChannel confirming() throws IOException {
        ConfirmingChannel open = channel;
        if (open == null || !open.isOpen()) {
            abandon();
            open = ConfirmingChannel.on(connections.openNow("entries"));
            channel = open;
        }
        return open;
    }

    private void abandon() {
        ConfirmingChannel old = channel;
        channel = null;
        if (old != null) {
            old.abandon();
        }
    }

    /** Ends its connection; after the relay has ended. */
    public Mono<Void> close() {
        return BrokerThread.call(thread, this::abandon)
                .then(connections.close())
                .then(Mono.fromRunnable(thread::dispose));
    }

    @Override
    public String toString() {
        return "RabbitTarget[exchange '" + exchange + "']";
    }
}
