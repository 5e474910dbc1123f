package io.onceflux.kafka;

import io.onceflux.Backoff;
import io.onceflux.Claims;
import io.onceflux.Delivery;
import io.onceflux.Intake;
import io.onceflux.InvalidSetupException;
import io.onceflux.kafka.Fencing.BrokenFenceException;
import java.time.Duration;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.function.BiConsumer;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;
import reactor.util.retry.Retry;

/**
 * Deliveries of a group, from generation to generation: a generation always ends with an error, and the next one begins after a
 * pause, and only once the consumer's database takes writes. A broker that is away ends none: the client waits for it by itself.
 */
final class KafkaSource implements Watcher {

    private static final Logger log = LoggerFactory.getLogger(KafkaSource.class);

    /** What is due gets so long; all of it ends within ten seconds. */
    private static final Duration DUE_LIMIT = Duration.ofSeconds(9);

    private static final Duration THREADS_LIMIT = Duration.ofSeconds(1);

    private final KafkaOptions options;
    private final Intake intake;
    private final Backoff backoff;
    private final DeadLetterProducer deadLetters;
    private final Topology topology;
    private final @Nullable Fencing fencing;
    private final TakeOver takeOver;
    private final Scheduler broker;
    private final Scheduler emitting;
    private final Runnable closed;
    private volatile long start;
    private volatile long consumingSince;
    private volatile @Nullable Generation last;
    private volatile boolean hasConsumed;
    private volatile int failures;

    KafkaSource(KafkaOptions options, Intake intake) {
        this.options = options;
        this.intake = intake;
        this.backoff = Backoff.between(options.minBackoff(), options.maxBackoff());
        this.deadLetters = new DeadLetterProducer(options);
        this.topology = new Topology(options);
        this.fencing = Fencing.of(intake, options);
        this.broker = BrokerThread.start("onceflux-kafka-" + options.groupId());
        this.takeOver = new TakeOver(options, intake, topology, fencing, broker);
        this.closed = intake.awaitClose().get();
        this.emitting = Schedulers.newSingle("onceflux-kafka-deliveries-" + options.groupId(), true);
    }

    Flux<Delivery<ConsumerRecord<byte[], byte[]>>> deliveries() {
        intake.listener().onSourceOpening(options.source());
        return generation().retryWhen(Retry.from(ends -> ends.concatMap(end -> pauseAfter(end.failure()))));
    }

    private Flux<Delivery<ConsumerRecord<byte[], byte[]>>> generation() {
        return intake.ready()
                .then(Mono.defer(this::warnings))
                .flatMap(warnings ->
                        fencing == null ? open(warnings, (admin, topics) -> {}) : openFenced(warnings, fencing))
                .flatMapMany(generation -> generation.deliveries(emitting, broker));
    }

    /** Empty once the consumer has run: what was to be warned of has been said. */
    private Mono<Optional<TopicWarnings>> warnings() {
        return hasConsumed
                ? Mono.just(Optional.empty())
                : hasClaimed().map(claimed -> Optional.of(new TopicWarnings(options, intake, claimed)));
    }

    /** For a warning only, so whatever the database has against it is not the end of the consumer. */
    private Mono<Boolean> hasClaimed() {
        Claims claims = intake.claims();
        return (claims == null
                        ? Mono.<Boolean>empty()
                        : intake.connections().use(connection -> claims.hasAny(connection, intake.consumer())))
                .onErrorResume(error -> {
                    log.debug("whether consumer '{}' has claims is not known", intake.consumer(), error);
                    return Mono.empty();
                })
                .defaultIfEmpty(false);
    }

    private Mono<Generation> openFenced(Optional<TopicWarnings> warnings, Fencing fence) {
        return fence.places()
                .flatMap(places -> open(warnings, (admin, topics) -> fence.requireFit(admin, places, topics)));
    }

    private Mono<Generation> open(Optional<TopicWarnings> warnings, BiConsumer<Admin, Set<String>> check) {
        return onBroker(() -> make(warnings, check));
    }

    private <V> Mono<V> onBroker(Callable<V> call) {
        return BrokerThread.call(broker, () -> {
                    if (start == 0) {
                        start = System.nanoTime(); // The database may have been waited for before.
                    }
                    return call.call();
                })
                .onErrorMap(error -> Refusals.explained(options, error));
    }

    private Generation make(Optional<TopicWarnings> warnings, BiConsumer<Admin, Set<String>> check) {
        topology.ensure(intake, warnings.orElse(null), check);
        Generation generation = new Generation(options, intake, deadLetters, fencing, takeOver, this);
        last = generation;
        return generation;
    }

    @Override
    public void consuming() {
        hasConsumed = true;
        consumingSince = System.nanoTime();
        intake.listener().onSourceConsuming(options.source());
    }

    @Override
    public void lost(String reason, Duration untilNextTry) {
        intake.listener().onSourceLost(options.source(), reason, untilNextTry);
    }

    /**
     * Until the group has taken the consumer in for the first time, a wrong set-up fails; afterwards all is ridden out but a broken fence,
     * and another instance in its place: the two would throw each other out for ever.
     */
    private Mono<Long> pauseAfter(Throwable end) {
        boolean setup = end instanceof InvalidSetupException;
        String words = setup ? String.valueOf(end.getMessage()) : Refusals.wordsOf(end);
        if (setup && isFinal(end)) {
            return Mono.error(end);
        }
        if (!hasConsumed && isLate()) {
            return Mono.error(new InvalidSetupException(
                    ("Kafka at %s could not be reached for %d s, or %s not be consumed: check bootstrap.servers and"
                                    + " security.protocol, and whether the brokers run. It ended with: %s")
                            .formatted(options.broker(), options.startLimit().toSeconds(), options.source(), words),
                    end));
        }
        if (hasConsumedForLong()) {
            failures = 0;
        }
        int now = failures + 1;
        failures = now;
        Duration pause = backoff.after(now);
        lost(words, pause);
        return Mono.delay(pause);
    }

    private boolean isFinal(Throwable setup) {
        return setup instanceof BrokenFenceException
                || Refusals.isReplaced(setup)
                || (!hasConsumed && (!Refusals.isReleasedInTime(setup) || isLate()));
    }

    private boolean isLate() {
        return start != 0 && Duration.ofNanos(System.nanoTime() - start).compareTo(options.startLimit()) > 0;
    }

    /** To join is no success yet: what ends it may come right behind that, and each time the whole group would rebalance for it. */
    private boolean hasConsumedForLong() {
        long began = consumingSince;
        consumingSince = 0;
        return began != 0 && Duration.ofNanos(System.nanoTime() - began).compareTo(options.maxBackoff()) > 0;
    }

    /**
     * Lets the last generation commit and leave its group, and what is being published as a dead letter end. The consumer's stop waits:
     * of a process that ends without it, what was done since the last commit comes again, and its partitions stay idle until the
     * session has timed out.
     */
    Mono<Void> close() {
        return within(DUE_LIMIT, Mono.when(whenLastClosed(), deadLetters.close()))
                .then(within(
                        THREADS_LIMIT,
                        Mono.when(
                                BrokerThread.end(broker),
                                BrokerThread.end(emitting),
                                BrokerThread.end(deadLetters.thread()))))
                .then(Mono.fromRunnable(() -> {
                    broker.dispose();
                    emitting.dispose();
                    deadLetters.thread().dispose();
                    intake.listener().onSourceClosed(options.source());
                    closed.run();
                }));
    }

    private Mono<Void> whenLastClosed() {
        return Mono.defer(() -> {
            Generation generation = last;
            return generation == null ? Mono.empty() : generation.whenClosed();
        });
    }

    private static Mono<Void> within(Duration limit, Mono<Void> closing) {
        return closing.timeout(limit).onErrorResume(error -> {
            log.debug("a source did not close as it should", error);
            return Mono.empty();
        });
    }
}
