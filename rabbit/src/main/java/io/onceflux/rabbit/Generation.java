package io.onceflux.rabbit;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.ShutdownSignalException;
import io.onceflux.Delivery;
import io.onceflux.Intake;
import io.onceflux.InvalidSetupException;
import java.io.IOException;
import java.time.Duration;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;
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
    private static final Duration CLOSING = Duration.ofSeconds(3);

    /** What ends a connection at once, again and again, does so sooner. */
    static final Duration A_WHILE = Duration.ofSeconds(5);

    /**
     * What every consumer has anyway, and a stream refuses to take: it would be consumed from its end on, and keep no
     * acknowledgement. To ask for its type by declaring it as one finds only those without a limit of size or age.
     */
    private static final Map<String, Object> NOT_OF_STREAMS = Map.of("x-priority", 0);

    private final RabbitOptions options;
    private final Intake intake;
    private final BrokerConnection connection;
    private final DeadLetterPublisher deadLetters;
    private final Scheduler broker;
    private final Acknowledgements acknowledgements;
    private final int prefetch;
    private final Watch watch;
    private final Sinks.Empty<Void> begun = Sinks.empty();
    private final Sinks.Empty<Void> enough = Sinks.empty();
    private final String consumerTag = "onceflux-" + UUID.randomUUID();
    private volatile @Nullable Channel channel;
    private volatile @Nullable IOException unanswered;
    private boolean accepted;

    Generation(
            RabbitOptions options,
            Intake intake,
            BrokerConnection connection,
            DeadLetterPublisher deadLetters,
            Scheduler broker,
            int prefetch,
            Watch watch) {
        this.options = options;
        this.intake = intake;
        this.connection = connection;
        this.deadLetters = deadLetters;
        this.broker = broker;
        this.prefetch = prefetch;
        this.watch = watch;
        // With half of them waiting, the broker still sends.
        this.acknowledgements = new Acknowledgements(broker, this::openChannel, prefetch / 2);
    }

    /**
     * Consumes until the channel is lost or the broker cancels; the flux then ends with an error that says why. It is an
     * {@link InvalidSetupException} if the broker refused the consumer.
     */
    Flux<Delivery<byte[]>> deliveries() {
        Receiver receiver = new Receiver(new ReceiverOptions()
                .connectionMono(Mono.just(connection.client()))
                .connectionSubscriptionScheduler(broker));
        ConsumeOptions consuming = new ConsumeOptions()
                .qos(prefetch)
                .consumerTag(consumerTag)
                .arguments(NOT_OF_STREAMS)
                .channelCallback(opened -> {
                    channel = opened;
                    // The receiver consumes next, and on this thread: when the task runs, the broker has answered.
                    broker.schedule(() -> noteAnswer(opened));
                });
        // When the consumer stops, the broker is asked for no more, but the channel stays open for the answers that are
        // due: the second publisher never emits, so it never ends the first.
        Mono<Delivery<byte[]>> intakeEnded = intake.stopRequested()
                .then(BrokerThread.call(broker, this::endIntake))
                .then(Mono.never());
        // Closed first: the receiver would cancel the consumer once more after intake was ended, which fails and is
        // logged.
        return receiver.consumeManualAck(options.queue(), consuming)
                .doOnCancel(this::closeNow)
                .<Delivery<byte[]>>map(message -> new RabbitDelivery(message, this, options))
                .takeUntilOther(Mono.firstWithSignal(intakeEnded, lasting(), givenUpForMore()))
                .subscribeOn(broker, false)
                .cancelOn(broker)
                .concatWith(Mono.error(() -> new IOException("the broker cancelled the consumer")))
                .onErrorResume(error ->
                        Mono.<Delivery<byte[]>>error(() -> whyEnded(error)).subscribeOn(broker));
    }

    private void noteAnswer(Channel opened) {
        if (opened.isOpen()) {
            accepted = true;
            watch.accepted();
            begun.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);
        }
    }

    /** Never emits. */
    private Mono<Delivery<byte[]>> lasting() {
        return begun.asMono()
                .then(Mono.delay(A_WHILE))
                .then(BrokerThread.call(broker, watch::lasting))
                .then(Mono.never());
    }

    private Mono<Delivery<byte[]>> givenUpForMore() {
        return enough.asMono()
                .then(Mono.error(() -> new IOException(
                        "one by one no more: the client has read as many messages as are sent at once")));
    }

    /** Ends it, so that the next one is sent more at once. */
    void giveUpForMore() {
        // After what else follows on an acknowledgement.
        broker.schedule(() -> enough.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST));
    }

    /** On the broker's thread, so that the broker's answer to the consumer has been noted. */
    private Throwable whyEnded(Throwable error) {
        Channel last = channel;
        ShutdownSignalException closed = last == null ? null : last.getCloseReason();
        IOException givenUp = unanswered;
        if (givenUp != null && (closed == null || !Refusals.isUnreadable(closed))) {
            return givenUp;
        }
        Throwable why = closed == null || closed.isInitiatedByApplication() ? error : closed;
        if (!accepted && Refusals.isAbout(why, Refusals.ACCESS_REFUSED)) {
            return new InvalidSetupException(
                    ("RabbitMQ at %s does not let the user consume queue '%s': the user needs the right to read it, and no other"
                                    + " consumer of it may be exclusive. It said: %s")
                            .formatted(options.broker(), options.queue(), Refusals.wordsOf(why)),
                    why);
        }
        if (!accepted && Refusals.isAbout(why, Refusals.PRECONDITION_FAILED)) {
            return new InvalidSetupException(
                    ("Queue '%s' at %s is a stream, which keeps no acknowledgements: messages would be lost. Consume a classic or"
                                    + " quorum queue that is bound to the same exchange. RabbitMQ said: %s")
                            .formatted(options.queue(), options.broker(), Refusals.wordsOf(why)),
                    why);
        }
        return why;
    }

    boolean isCurrent() {
        Channel open = channel;
        return unanswered == null && open != null && open.isOpen();
    }

    // An answer that is not written would leave the broker waiting for it for as long as the channel lives.
    // So it ends the generation, and the broker delivers again.

    Mono<Void> acknowledge(long deliveryTag) {
        return acknowledgements
                .acknowledge(deliveryTag, this::notWritten)
                .doOnSuccess(written -> watch.settled(this))
                .doOnError(this::failed);
    }

    Mono<Void> requeue(long deliveryTag) {
        return Mono.defer(() -> {
            AtomicBoolean written = new AtomicBoolean();
            return BrokerThread.call(broker, () -> {
                        openChannel().basicNack(deliveryTag, false, true);
                        written.set(true);
                        acknowledgements.hasAnswer(deliveryTag);
                    })
                    .doOnError(this::failed)
                    .doOnCancel(() -> {
                        if (!written.get()) {
                            notWritten();
                        }
                    });
        });
    }

    private void failed(Throwable error) {
        giveUp(new IOException("an answer to the broker failed", error));
    }

    private void notWritten() {
        giveUp(new IOException("an answer to the broker could not be written in time"));
    }

    /** From any thread, which must not block: the broker's own may be stuck. */
    private void giveUp(IOException why) {
        if (isCurrent()) {
            unanswered = why;
            Schedulers.boundedElastic().schedule(connection::cut);
        }
    }

    DeadLetterPublisher deadLetters() {
        return deadLetters;
    }

    Mono<Void> close() {
        return BrokerThread.call(broker, this::closeNow);
    }

    /** The channel is closed with its connection. */
    private void closeNow() {
        connection.abort(CLOSING);
    }

    /** Not waiting for the broker's answer, because the acknowledgements that are due would wait behind it. */
    private void endIntake() {
        Channel open = channel;
        if (open != null && open.isOpen()) {
            try {
                open.asyncRpc(new AMQP.Basic.Cancel.Builder()
                        .consumerTag(consumerTag)
                        .nowait(true)
                        .build());
            } catch (IOException | RuntimeException e) {
                log.debug("the channel was lost while its consumer was cancelled", e);
            }
        }
    }

    private Channel openChannel() throws IOException {
        Channel open = channel;
        if (open == null || !isCurrent()) {
            throw new IOException("the channel is lost; the broker delivers its messages again");
        }
        return open;
    }

    /** Told, on the broker's thread, what becomes of a generation. */
    interface Watch {

        /** The broker has accepted it as a consumer. */
        void accepted();

        /** The answer to one of its deliveries, which is done, was written. */
        void settled(Generation generation);

        /** It has been a consumer for a while. */
        void lasting();
    }
}
