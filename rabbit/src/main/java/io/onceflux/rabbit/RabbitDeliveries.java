package io.onceflux.rabbit;

import io.onceflux.Delivery;
import io.onceflux.Intake;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Deliveries from a queue of RabbitMQ, acknowledged by hand.
 *
 * <p>They are {@link io.onceflux.Delivery}, not the RabbitMQ client's {@link com.rabbitmq.client.Delivery} of the same simple
 * name: code that uses both imports one and writes the other out.
 */
public final class RabbitDeliveries {

    private RabbitDeliveries() {}

    /**
     * The messages of a queue, until cancelled.
     *
     * <p>Each subscription has a connection and a channel of its own. When the channel is lost, closed by the broker, or its
     * consumer cancelled, a new one is opened after a pause; deliveries of the old one are then not current any more. Cancelling
     * closes the channel, and the broker delivers again what was not settled. When the {@link io.onceflux.IdempotentConsumer}
     * that subscribes is stopped, the broker is asked for no more at once, and the channel is closed when every delivery has
     * been settled.
     *
     * <p>Deliveries are emitted on a thread of the RabbitMQ client. Demand does not reach the broker; the prefetch bounds what
     * waits here. Settling completes on a thread of the source when the answer is written to the socket, which the broker does
     * not confirm; for a dead letter after its copy is confirmed and then the original acknowledged. An acknowledgement or a
     * requeue that is cancelled before it is written, as by a time limit, gives the connection up: the channel's deliveries are
     * not current any more, and come again. The publishing of a dead letter that is cancelled goes on if it has begun, and
     * settling the delivery again waits for it; if it has not, nothing is published.
     *
     * <p>Closing takes at most ten seconds, also if the broker does not answer; {@link
     * io.onceflux.ConsumerListener#onSourceClosed} tells.
     *
     * <p>A dead letter has the body, headers and properties of the original, and headers {@code x-onceflux-...} that say where it
     * came from and why it was given up. Where the original's headers leave too little room in a frame of the connection, these
     * are fewer or none. Expiration, user id, {@code CC} and {@code x-death} are kept in such headers; headers of the sender that look
     * like these are left out. Properties and names of headers that are not UTF-8, such as a binary {@code correlation-id}, have U+FFFD
     * where the client could not decode them. A consumer that keeps dead letters in a table needs neither a queue for them nor the
     * right to publish.
     *
     * <p>Errors, before the broker has accepted the consumer for the first time: {@link io.onceflux.InvalidSetupException} for
     * a refused login, a missing queue or dead-letter queue, a queue declared otherwise, a queue that the user may not read or
     * that another consumes exclusively, a stream, no right to publish dead letters where they go to the default exchange, and a broker
     * that cannot be reached for the start limit.
     * Afterwards none: outages are ridden out, and told to the consumer's listener.
     *
     * <p>A message that the client cannot read, such as one with headers nested in more than 32 levels, ends the connection each
     * time that it is delivered. After two such ends messages are taken one by one, until as many are settled as the prefetch has: so
     * those before it are handled, and a quorum queue with a delivery limit gives up no other. A classic queue, or one without a
     * limit, stands still at it until somebody removes it. The listener and the health say so.
     *
     * <p>Not promised: an order of messages across redeliveries.
     */
    public static Flux<Delivery<byte[]>> from(RabbitOptions options) {
        return Flux.deferContextual(context -> {
            Intake intake = Intake.from(context);
            intake.requireOwnOrder("a queue");
            warn(options, intake);
            return Flux.usingWhen(
                    Mono.fromCallable(() -> new RabbitSource(options, intake)),
                    RabbitSource::deliveries,
                    RabbitSource::close);
        });
    }

    private static void warn(RabbitOptions options, Intake intake) {
        Integer prefetch = options.prefetch();
        if (prefetch != null && prefetch < intake.lanes()) {
            intake.listener()
                    .onWarning(
                            "prefetch %d of queue '%s' keeps %d of %d lanes idle; raise it to at least the number of lanes"
                                    .formatted(prefetch, options.queue(), intake.lanes() - prefetch, intake.lanes()));
        }
        if (intake.longestHold().compareTo(options.consumerTimeout()) >= 0) {
            intake.listener()
                    .onWarning(("a delivery may stay unacknowledged for %s, but the broker takes it back after %s"
                                    + " (consumer_timeout): lower conflictTimeout or timeLimit, or raise consumer_timeout")
                            .formatted(intake.longestHold(), options.consumerTimeout()));
        }
    }
}
