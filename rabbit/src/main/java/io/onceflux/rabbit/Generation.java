package io.onceflux.rabbit;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import io.onceflux.Delivery;
import io.onceflux.Intake;
import java.io.IOException;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.rabbitmq.ConsumeOptions;
import reactor.rabbitmq.Receiver;
import reactor.rabbitmq.ReceiverOptions;

/**
 * One connection, its channel, and the deliveries that came through it. They can be answered only through that channel; when
 * it is lost, they are not current any more and the broker delivers them again.
 *
 * <p>Every call to the broker blocks, so all are made on one thread of the source's own, in order.
 */
final class Generation {

    private static final Logger log = LoggerFactory.getLogger(Generation.class);

    private final RabbitOptions options;
    private final Intake intake;
    private final Connection connection;
    private final DeadLetterPublisher deadLetters;
    private final Scheduler broker;
    private final String consumerTag = "onceflux-" + UUID.randomUUID();
    private volatile @Nullable Channel channel;

    Generation(
            RabbitOptions options,
            Intake intake,
            Connection connection,
            DeadLetterPublisher deadLetters,
            Scheduler broker) {
        this.options = options;
        this.intake = intake;
        this.connection = connection;
        this.deadLetters = deadLetters;
        this.broker = broker;
    }

    /** Consumes until the channel is lost or the broker cancels; in both cases the flux completes. */
    Flux<Delivery<byte[]>> deliveries(int prefetch) {
        Receiver receiver = new Receiver(
                new ReceiverOptions().connectionMono(Mono.just(connection)).connectionSubscriptionScheduler(broker));
        ConsumeOptions consuming =
                new ConsumeOptions().qos(prefetch).consumerTag(consumerTag).channelCallback(opened -> channel = opened);
        // When the consumer stops, the broker is asked for no more, but the channel stays open for the answers that are
        // due:
        // the second publisher never emits, so it never ends the first.
        Mono<Delivery<byte[]>> intakeEnded =
                intake.stopRequested().then(onBrokerThread(this::endIntake)).then(Mono.never());
        return receiver.consumeManualAck(options.queue(), consuming)
                .<Delivery<byte[]>>map(message -> new RabbitDelivery(message, this, options))
                .takeUntilOther(intakeEnded)
                .subscribeOn(broker, false)
                .cancelOn(broker);
    }

    boolean isCurrent() {
        Channel open = channel;
        return open != null && open.isOpen();
    }

    Mono<Void> acknowledge(long deliveryTag) {
        return onBrokerThread(() -> openChannel().basicAck(deliveryTag, false));
    }

    Mono<Void> requeue(long deliveryTag) {
        return onBrokerThread(() -> openChannel().basicNack(deliveryTag, false, true));
    }

    DeadLetterPublisher deadLetters() {
        return deadLetters;
    }

    /** Why the flux has ended, for a person. */
    String endedBecause() {
        Channel last = channel;
        return last == null || last.getCloseReason() == null
                ? "the broker cancelled the consumer"
                : String.valueOf(last.getCloseReason().getMessage());
    }

    Mono<Void> close() {
        return onBrokerThread(() -> connection.abort(5_000));
    }

    private void endIntake() {
        Channel open = channel;
        if (open != null && open.isOpen()) {
            try {
                open.basicCancel(consumerTag);
            } catch (IOException | RuntimeException e) {
                log.debug("the channel was lost while its consumer was cancelled", e);
            }
        }
    }

    private Channel openChannel() throws IOException {
        Channel open = channel;
        if (open == null || !open.isOpen()) {
            throw new IOException("the channel is lost; the broker delivers its messages again");
        }
        return open;
    }

    private Mono<Void> onBrokerThread(BrokerCall call) {
        return Mono.<Void>fromCallable(() -> {
                    call.run();
                    return null;
                })
                .subscribeOn(broker);
    }

    /** A call that may block. */
    @FunctionalInterface
    private interface BrokerCall {
        void run() throws IOException;
    }
}
