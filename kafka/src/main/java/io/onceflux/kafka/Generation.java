package io.onceflux.kafka;

import io.onceflux.Delivery;
import io.onceflux.Intake;
import io.onceflux.kafka.Assignments.Taken;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.Uuid;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;
import reactor.core.publisher.Sinks.EmitResult;
import reactor.core.scheduler.Scheduler;
import reactor.kafka.receiver.KafkaReceiver;
import reactor.kafka.receiver.ReceiverOptions;
import reactor.kafka.receiver.internals.ConsumerFactory;

/** One consumer of the Kafka client, and the deliveries that came through it. They can be answered only through it. */
final class Generation {

    private static final Duration CLOSING = Duration.ofSeconds(3);

    private final KafkaOptions options;
    private final Intake intake;
    private final DeadLetterProducer deadLetters;
    private final @Nullable Fencing fencing;
    private final TakeOver takeOver;
    private final Watcher watcher;
    private final Assignments assignments;

    /** Filled by the consumer's thread, at each rebalance. */
    private final Sinks.Many<List<Assignment>> taken = Sinks.many().unicast().onBackpressureBuffer();

    private volatile @Nullable WatchedConsumer consumer;

    Generation(
            KafkaOptions options,
            Intake intake,
            DeadLetterProducer deadLetters,
            @Nullable Fencing fencing,
            TakeOver takeOver,
            Watcher watcher) {
        this.options = options;
        this.intake = intake;
        this.deadLetters = deadLetters;
        this.fencing = fencing;
        this.takeOver = takeOver;
        this.watcher = watcher;
        this.assignments = new Assignments(this::topicIds, fencing, this::note);
    }

    private Map<String, Uuid> topicIds(Set<String> topics) {
        return options.idSource() == KafkaOptions.IdSource.POSITION ? Topology.idsOf(options, topics) : Map.of();
    }

    private void note(List<Assignment> assigned) {
        EmitResult result = taken.tryEmitNext(assigned);
        if (result.isFailure() && result != EmitResult.FAIL_CANCELLED) { // The latter: the generation has ended.
            result.orThrow();
        }
    }

    /**
     * Consumes until the client gives up; the flux then ends with an error that says why.
     *
     * @param emitting the thread that deliveries come on
     * @param making the thread that the client is made on, which may block
     */
    Flux<Delivery<ConsumerRecord<byte[], byte[]>>> deliveries(Scheduler emitting, Scheduler making) {
        // When the consumer stops, nothing more is taken, but it stays in the group for the answers that are due. What
        // is beside the deliveries never emits, so it never ends them; but by its error.
        Mono<Void> intakeEnded = intake.stopRequested().then(Mono.fromRunnable(assignments::endIntake));
        Mono<Void> lookedAt = taken.asFlux()
                .concatMap(assigned -> takeOver.lookAt(assigned, watcher))
                .then();
        Mono<Object> beside = Mono.when(intakeEnded, lookedAt).then(Mono.never());
        return KafkaReceiver.create(new Watched(), receiving(emitting))
                .receive()
                .<Delivery<ConsumerRecord<byte[], byte[]>>>handle((record, sink) -> {
                    Taken taken = assignments.take(record);
                    if (taken != null) {
                        sink.next(new KafkaDelivery(record, taken, deadLetters, fencing, options, this::moreMayCome));
                    }
                })
                .doOnCancel(assignments::cut)
                .takeUntilOther(beside)
                .subscribeOn(making, false)
                .concatWith(Mono.error(() -> new IOException("the receiver ended")))
                .onErrorMap(error -> Refusals.explained(options, error));
    }

    /** Reactor Kafka polls, for as long as there is demand; offsets are kept and committed by {@link WatchedConsumer}. */
    private ReceiverOptions<byte[], byte[]> receiving(Scheduler emitting) {
        ReceiverOptions<byte[], byte[]> receiving = ReceiverOptions.<byte[], byte[]>create(ClientSettings.consumer(
                        options,
                        intake.consumer(),
                        fencing == null ? intake.maxInFlight() : ClientSettings.shareOfALane(intake)))
                .commitInterval(Duration.ZERO)
                .maxDelayRebalance(Duration.ZERO)
                .closeTimeout(CLOSING)
                .schedulerSupplier(() -> emitting);
        return options.pattern() == null
                ? receiving.subscription(options.topics())
                : receiving.subscription(options.patternWithoutDeadLetters());
    }

    Mono<Void> whenClosed() {
        return Mono.defer(() -> {
            WatchedConsumer made = consumer;
            return made == null ? Mono.empty() : made.whenClosed();
        });
    }

    /**
     * Of a partition. Where one is a lane, the client would let the first one have all places, for it returns what it has fetched of one before
     * it goes on to the next: the other lanes would have nothing to do.
     */
    private long mostOpen() {
        return fencing == null ? Long.MAX_VALUE : ClientSettings.shareOfALane(intake);
    }

    private void moreMayCome() {
        WatchedConsumer made = consumer;
        if (made != null) {
            made.wakeup();
        }
    }

    private long maxDeferred() {
        Integer chosen = options.maxDeferredCommits();
        return chosen != null ? chosen : 10L * intake.maxInFlight();
    }

    private final class Watched extends ConsumerFactory {

        @Override
        @SuppressWarnings("unchecked") // Both are byte[]: there is one set of options, and it is made above.
        public <K, V> Consumer<K, V> createConsumer(ReceiverOptions<K, V> receiving) {
            WatchedConsumer made = Refusals.making(
                    options,
                    () -> new WatchedConsumer(
                            receiving.consumerProperties(), options, assignments, maxDeferred(), mostOpen(), watcher));
            consumer = made;
            return (Consumer<K, V>) made;
        }
    }
}
