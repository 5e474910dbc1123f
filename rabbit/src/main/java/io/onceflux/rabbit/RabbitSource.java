package io.onceflux.rabbit;

import com.rabbitmq.client.Connection;
import io.onceflux.Backoff;
import io.onceflux.Delivery;
import io.onceflux.Intake;
import io.onceflux.InvalidSetupException;
import java.time.Duration;
import java.util.concurrent.Executors;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/**
 * Deliveries of one queue, from generation to generation: when a channel ends, whether by an error or by completing, the next
 * one is opened after a pause, and only once the consumer's database takes writes.
 */
final class RabbitSource {

    private static final Duration CLOSING = Duration.ofSeconds(10);

    private final RabbitOptions options;
    private final Intake intake;
    private final Backoff backoff;
    private final BrokerConnections connections;
    private final DeadLetterPublisher deadLetters;
    private final DeadLetterRight deadLetterRight;
    private final Topology topology;
    private final Scheduler broker;
    private final long start = System.nanoTime();
    private boolean hasConsumed;
    private int failures;
    private @Nullable String ended;

    RabbitSource(RabbitOptions options, Intake intake) {
        this.options = options;
        this.intake = intake;
        this.backoff = Backoff.between(options.minBackoff(), options.maxBackoff());
        this.connections = new BrokerConnections(options);
        this.deadLetters = new DeadLetterPublisher(options, connections);
        this.deadLetterRight = new DeadLetterRight(options, connections);
        this.topology = new Topology(options);
        this.broker = Schedulers.fromExecutorService(
                Executors.newSingleThreadExecutor(task -> {
                    Thread thread = new Thread(task, "onceflux-rabbit-" + options.queue());
                    thread.setDaemon(true);
                    return thread;
                }),
                "onceflux-rabbit");
    }

    Flux<Delivery<byte[]>> deliveries() {
        return generation()
                .onErrorResume(this::afterError)
                .repeatWhen(ends -> ends.concatMap(count -> Mono.defer(this::pause)));
    }

    private Flux<Delivery<byte[]>> generation() {
        return intake.ready()
                .thenMany(Flux.usingWhen(
                        Mono.fromCallable(this::open).subscribeOn(broker), this::consume, Generation::close));
    }

    private Generation open() throws Exception {
        Connection connection = connections.openNow("consumer");
        try {
            topology.ensure(connection);
            if (!hasConsumed) {
                deadLetterRight.require();
            }
        } catch (Exception e) {
            connection.abort(1_000);
            throw e;
        }
        return new Generation(options, intake, connection, deadLetters, broker);
    }

    private Flux<Delivery<byte[]>> consume(Generation generation) {
        return generation.deliveries(prefetch(), this::accepted);
    }

    private void accepted() {
        hasConsumed = true;
        failures = 0;
    }

    private int prefetch() {
        Integer chosen = options.prefetch();
        return chosen != null ? chosen : Math.min(intake.maxInFlight(), 65_535);
    }

    /** Until the broker has accepted a consumer for the first time, a wrong set-up fails; afterwards all is ridden out. */
    private Flux<Delivery<byte[]>> afterError(Throwable error) {
        ended = error instanceof InvalidSetupException ? error.getMessage() : Refusals.wordsOf(error);
        if (hasConsumed) {
            return Flux.empty();
        }
        if (error instanceof InvalidSetupException) {
            return Flux.error(error);
        }
        Duration since = Duration.ofNanos(System.nanoTime() - start);
        if (since.compareTo(options.startLimit()) > 0) {
            return Flux.error(new InvalidSetupException(
                    ("RabbitMQ at %s could not be reached for %d s, or queue '%s' not be consumed: check host and port of the"
                                    + " ConnectionFactory, and whether the broker runs. It ended with: %s")
                            .formatted(options.broker(), options.startLimit().toSeconds(), options.queue(), ended),
                    error));
        }
        return Flux.empty();
    }

    private Mono<Long> pause() {
        Duration pause = backoff.after(++failures);
        intake.listener()
                .onWarning("the subscription to queue '%s' at %s ended, and is made again in %d ms: %s"
                        .formatted(options.queue(), options.broker(), pause.toMillis(), ended));
        return Mono.delay(pause);
    }

    /** What was due on the broker's thread is done first. */
    Mono<Void> close() {
        return Mono.fromRunnable(() -> {})
                .subscribeOn(broker)
                .then(deadLetters.close())
                .then(Mono.defer(broker::disposeGracefully))
                .timeout(CLOSING)
                .onErrorResume(error -> Mono.fromRunnable(broker::dispose));
    }
}
