package io.onceflux.rabbit;

import io.onceflux.Backoff;
import io.onceflux.Delivery;
import io.onceflux.Intake;
import io.onceflux.InvalidSetupException;
import java.time.Duration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.util.retry.Retry;

/**
 * Deliveries of one queue, from generation to generation: a generation always ends with an error, and the next one is opened
 * after a pause, and only once the consumer's database takes writes.
 */
final class RabbitSource implements Generation.Watch {

    private static final Logger log = LoggerFactory.getLogger(RabbitSource.class);

    /** What is due gets so long; what hangs then is cut, and all of it ends within ten seconds. */
    private static final Duration DUE_LIMIT = Duration.ofSeconds(6);

    private static final Duration THREADS_LIMIT = Duration.ofSeconds(1);

    private final RabbitOptions options;
    private final Intake intake;
    private final Backoff backoff;
    private final BrokerConnections connections;
    private final DeadLetterPublisher deadLetters;
    private final DeadLetterRight deadLetterRight;
    private final Topology topology;
    private final Scheduler broker;
    private final Prefetch prefetch;
    private final long start = System.nanoTime();
    private boolean hasConsumed;
    private boolean isConsuming;
    private int failures;

    RabbitSource(RabbitOptions options, Intake intake) {
        this.options = options;
        this.intake = intake;
        this.backoff = Backoff.between(options.minBackoff(), options.maxBackoff());
        this.connections = new BrokerConnections(options);
        this.deadLetters = new DeadLetterPublisher(options, connections);
        this.deadLetterRight = new DeadLetterRight(options, connections);
        this.topology = new Topology(options, intake);
        this.broker = BrokerThread.start("onceflux-rabbit-" + options.queue());
        Integer chosen = options.prefetch();
        this.prefetch = new Prefetch(chosen != null ? chosen : Math.min(intake.maxInFlight(), 65_535));
    }

    Flux<Delivery<byte[]>> deliveries() {
        intake.listener().onSourceOpening(options.source());
        return generation().retryWhen(Retry.from(ends -> ends.concatMap(end -> pauseAfter(end.failure()))));
    }

    private Flux<Delivery<byte[]>> generation() {
        return intake.ready()
                .thenMany(Flux.usingWhen(
                        Mono.fromCallable(this::open).subscribeOn(broker), Generation::deliveries, Generation::close));
    }

    private Generation open() throws Exception {
        BrokerConnection connection = connections.openNow("consumer");
        try {
            topology.ensure(connection);
            if (!hasConsumed && !intake.keepsDeadLetters()) {
                deadLetterRight.require();
            }
        } catch (Exception e) {
            connection.abort(Duration.ofSeconds(1));
            throw e;
        }
        return new Generation(options, intake, connection, deadLetters, broker, prefetch.next(), this);
    }

    @Override
    public void accepted() {
        if (!hasConsumed) {
            hasConsumed = true;
            consuming();
        }
    }

    @Override
    public void settled(Generation generation) {
        consuming();
        if (prefetch.settledOne()) {
            generation.giveUpForMore();
        }
    }

    @Override
    public void lasting() {
        consuming();
    }

    /** After a loss, that the broker has accepted a consumer is not enough: the client may be unable to read what it is sent first. */
    private void consuming() {
        failures = 0;
        if (!isConsuming) {
            isConsuming = true;
            intake.listener().onSourceConsuming(options.source());
        }
    }

    /** Until the broker has accepted a consumer for the first time, a wrong set-up fails; afterwards all is ridden out. */
    private Mono<Long> pauseAfter(Throwable end) {
        boolean setup = end instanceof InvalidSetupException;
        String words = setup ? String.valueOf(end.getMessage()) : Refusals.wordsOf(end);
        if (!hasConsumed && setup) {
            return Mono.error(end);
        }
        Duration since = Duration.ofNanos(System.nanoTime() - start);
        if (!hasConsumed && since.compareTo(options.startLimit()) > 0) {
            return Mono.error(new InvalidSetupException(
                    ("RabbitMQ at %s could not be reached for %d s, or queue '%s' not be consumed: check host and port of the"
                                    + " ConnectionFactory, and whether the broker runs. It ended with: %s")
                            .formatted(options.broker(), options.startLimit().toSeconds(), options.queue(), words),
                    end));
        }
        isConsuming = false;
        prefetch.ended(end);
        Duration pause = backoff.after(++failures);
        intake.listener().onSourceLost(options.source(), words, pause);
        return Mono.delay(pause);
    }

    /**
     * What was due on the broker's threads is done first, for as long as the limit. Then no connection is left, whatever those
     * threads are stuck in: a broker that wakes up later must not keep messages for a consumer that is gone.
     */
    Mono<Void> close() {
        Mono<Void> due = BrokerThread.call(broker, () -> {});
        return within(DUE_LIMIT, Mono.when(due, deadLetters.close()))
                .then(connections.close())
                .then(within(
                        THREADS_LIMIT, Mono.when(BrokerThread.end(broker), BrokerThread.end(deadLetters.thread()))))
                .then(Mono.fromRunnable(() -> {
                    broker.dispose();
                    deadLetters.thread().dispose();
                    intake.listener().onSourceClosed(options.source());
                }));
    }

    private static Mono<Void> within(Duration limit, Mono<Void> closing) {
        return closing.timeout(limit).onErrorResume(error -> {
            log.debug("a source did not close as it should", error);
            return Mono.empty();
        });
    }
}
