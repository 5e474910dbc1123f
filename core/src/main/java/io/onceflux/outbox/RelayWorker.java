package io.onceflux.outbox;

import io.onceflux.Backoff;
import io.onceflux.postgres.OutboxTable;
import io.onceflux.postgres.OutboxTable.Lease;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Takes a batch of a kind, sends it, writes down what became of it, and takes the next. */
final class RelayWorker {

    /** Between being woken and looking: what was appended is not committed yet, and there may be more. */
    private static final Duration SHORTEST_PAUSE = Duration.ofMillis(10);

    private static final Backoff AFTER_ERRORS = Backoff.between(Duration.ofMillis(200), Duration.ofSeconds(10));

    private final RelaySettings settings;
    private final OutboxTable table;
    private final String kind;
    private final RelayStop stop;
    private final WakeUps wakeUps;
    private final WakeUps siblings;

    // Of one round, then of the next: they follow each other.
    private volatile int failures;
    private volatile int barren;
    private volatile int size;
    private volatile long known;
    private volatile Duration idlePause = SHORTEST_PAUSE;
    private volatile String reached = "";
    private volatile boolean foundSinceFirstKey;
    private volatile boolean lookOn;

    /**
     * @param wakeUps of this one
     * @param siblings woken when there is more than it can take
     */
    RelayWorker(
            RelaySettings settings, OutboxTable table, String kind, RelayStop stop, WakeUps wakeUps, WakeUps siblings) {
        this.settings = settings;
        this.table = table;
        this.kind = kind;
        this.stop = stop;
        this.wakeUps = wakeUps;
        this.siblings = siblings;
        this.size = settings.batchSize();
    }

    Flux<Relayed> run() {
        return Flux.defer(this::round)
                .repeatWhen(rounds -> rounds.takeWhile(any -> !stop.isAsked())
                        .concatMap(this::pauseAfter)
                        .takeWhile(any -> !stop.isAsked()));
    }

    private Flux<Relayed> round() {
        known = wakeUps.count();
        return Flux.usingWhen(
                        take(),
                        batch -> batch.send()
                                .doOnNext(relayed -> settings.tellAll(listener -> listener.onRelayed(relayed)))
                                .doOnTerminate(() -> noteEnd(batch)),
                        RelayBatch::release,
                        (batch, error) -> batch.release(),
                        RelayBatch::release)
                .onBackpressureBuffer() // What was sent is written down whether anybody asks for it or not.
                .doOnComplete(() -> failures = 0)
                .onErrorResume(error -> {
                    int now = failures + 1;
                    failures = now;
                    settings.tell(error);
                    return Flux.empty();
                });
    }

    private Mono<RelayBatch> take() {
        return settings.database()
                .inTransaction(connection -> table.waitForTurn(connection, kind).then(Mono.defer(() -> {
                    long now = System.nanoTime(); // The lease is counted from later on.
                    return table.take(connection, kind, size, settings.lease(), settings.parkedBlocksItsKey(), reached)
                            .map(taken -> new Look(taken, now));
                })))
                .flatMap(look -> Mono.fromSupplier(() -> batchOf(look)));
    }

    private record Look(OutboxTable.Taken taken, long atNanos) {}

    private @Nullable RelayBatch batchOf(Look look) {
        List<Lease> rows = look.taken().rows();
        foundSinceFirstKey = !rows.isEmpty() || (foundSinceFirstKey && !reached.isEmpty());
        reached = look.taken().reached();
        lookOn = rows.isEmpty() && (!reached.isEmpty() || foundSinceFirstKey);
        if (rows.isEmpty()) {
            barren = 0;
            return null;
        }
        if (rows.size() == settings.batchSize()) {
            siblings.wake();
        }
        return RelayBatch.begin(settings, table, kind, stop, rows, look.atNanos());
    }

    /** What is too much to be read at once is read in smaller parts. */
    private void noteEnd(RelayBatch batch) {
        barren = batch.isBarren() ? barren + 1 : 0;
        size = batch.wasRead() ? Math.min(settings.batchSize(), size * 2) : Math.max(1, size / 2);
    }

    /** At once, if there was anything; otherwise longer each time, until somebody says that there is, or it is time to look. */
    private Mono<Long> pauseAfter(Long told) {
        if (failures > 0) {
            return orStopped(Mono.delay(AFTER_ERRORS.after(failures)));
        }
        if (barren > 0) { // The target is likely away, and each look passes over all that waits for it.
            return orStopped(Mono.delay(AFTER_ERRORS.after(barren)));
        }
        if (lookOn) { // There are keys that were not looked at.
            return orStopped(Mono.delay(SHORTEST_PAUSE));
        }
        if (told > 0) {
            idlePause = SHORTEST_PAUSE;
            return Mono.just(0L);
        }
        Duration pause = idlePause;
        Duration twice = pause.multipliedBy(2);
        idlePause = twice.compareTo(settings.pollInterval()) < 0 ? twice : settings.pollInterval();
        Mono<Long> woken =
                wakeUps.after(known).delayElement(SHORTEST_PAUSE).doOnNext(any -> idlePause = SHORTEST_PAUSE);
        return orStopped(Mono.firstWithSignal(Mono.delay(pause), woken));
    }

    private Mono<Long> orStopped(Mono<Long> pause) {
        return Mono.firstWithSignal(pause, stop.asked().thenReturn(0L));
    }
}
