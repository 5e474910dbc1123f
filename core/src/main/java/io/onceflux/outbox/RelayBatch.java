package io.onceflux.outbox;

import io.onceflux.Backoff;
import io.onceflux.PermanentFailure;
import io.onceflux.postgres.OutboxTable;
import io.onceflux.postgres.OutboxTable.Fate;
import io.onceflux.postgres.OutboxTable.Lease;
import io.onceflux.postgres.OutboxTable.Row;
import io.onceflux.postgres.OutboxTable.Settled;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.util.retry.Retry;

/** Rows that a worker has taken for a time: they are sent, each behind those before it that have its key, and what became of them written down. */
final class RelayBatch {

    private static final Logger log = LoggerFactory.getLogger(RelayBatch.class);
    private static final Duration GATHERED_FOR = Duration.ofMillis(10);
    private static final int LONGEST_REASON = 1_000;

    private final RelaySettings settings;
    private final OutboxTable table;
    private final String kind;
    private final RelayStop stop;
    private final List<Lease> taken;
    private final Map<Long, Lease> leases;
    private final long leaseEndNanos;
    private final Backoff backoff;
    private final Target target;
    private final Set<Long> settled = ConcurrentHashMap.newKeySet();
    private volatile boolean anySent;
    private volatile boolean anyFailed;
    private volatile boolean cannotWriteDown;
    private volatile boolean read;

    private RelayBatch(
            RelaySettings settings,
            OutboxTable table,
            String kind,
            RelayStop stop,
            List<Lease> taken,
            long takenAtNanos) {
        this.settings = settings;
        this.table = table;
        this.kind = kind;
        this.stop = stop;
        this.taken = taken;
        this.leases = taken.stream().collect(Collectors.toMap(Lease::number, lease -> lease));
        this.leaseEndNanos = takenAtNanos + settings.lease().toNanos();
        this.backoff = Backoff.between(settings.minBackoff(), settings.maxBackoff());
        this.target = Objects.requireNonNull(settings.targets().get(kind));
    }

    /**
     * A batch, until it is released.
     *
     * @param takenAtNanos at the latest
     */
    static RelayBatch begin(
            RelaySettings settings,
            OutboxTable table,
            String kind,
            RelayStop stop,
            List<Lease> taken,
            long takenAtNanos) {
        stop.batchBegins();
        return new RelayBatch(settings, table, kind, stop, taken, takenAtNanos);
    }

    /** What became of some rows, and what is told of it: nothing, if they were not begun. */
    private record Result(List<Settled> fates, List<Relayed> told) {

        static final Result NOT_BEGUN = new Result(List.of(), List.of());

        boolean isSent() {
            return !told.isEmpty() && told.get(0) instanceof Relayed.Sent;
        }
    }

    /** Whether all that was taken could be read. */
    boolean wasRead() {
        return read;
    }

    /** Whether all that was tried has failed, and there is likely much more. */
    boolean isBarren() {
        return anyFailed && !anySent && taken.size() >= settings.batchSize();
    }

    /** Reads the rows, behind the transaction that has taken them, and sends them; those with different keys side by side. */
    Flux<Relayed> send() {
        return settings.database()
                .withoutTransaction(connection -> table.read(connection, taken))
                .doOnNext(rows -> read = true)
                .flatMapMany(this::send);
    }

    private Flux<Relayed> send(List<Row> rows) {
        Map<String, List<Row>> byKey =
                rows.stream().collect(Collectors.groupingBy(Row::key, LinkedHashMap::new, Collectors.toList()));
        return Flux.fromIterable(byKey.values())
                .flatMap(this::inOrder, Math.max(1, byKey.size()))
                .bufferTimeout(Math.max(1, rows.size()), GATHERED_FOR, true)
                .concatMap(this::writeDown);
    }

    /** Up to the first that is not sent; those behind it are given back with it. */
    private Flux<Result> inOrder(List<Row> ofKey) {
        return Flux.range(0, ofKey.size())
                .concatMap(i -> Mono.defer(() -> mayBegin() ? attempt(ofKey, i) : Mono.just(Result.NOT_BEGUN)), 1)
                .takeUntil(result -> !result.isSent())
                .filter(result -> !result.told().isEmpty());
    }

    /** Not where the lease could be over before it is written down what became of it. */
    private boolean mayBegin() {
        long left = leaseEndNanos - System.nanoTime();
        return !stop.isAsked()
                && !cannotWriteDown
                && left
                        > settings.sendLimit()
                                .plus(settings.lease().dividedBy(4))
                                .toNanos();
    }

    private Mono<Result> attempt(List<Row> ofKey, int index) {
        Row row = ofKey.get(index);
        OutboxMessage message = new OutboxMessage(
                row.idempotencyKey(),
                row.kind(),
                row.key(),
                row.payload(),
                row.headers(),
                row.appendedAt(),
                row.attempts());
        return sending(message)
                .timeout(settings.sendLimit())
                .then(Mono.fromSupplier(() -> sent(row, message)))
                .onErrorResume(error -> Mono.fromSupplier(() -> failed(ofKey, index, message, error)));
    }

    private Mono<Void> sending(OutboxMessage message) {
        return Mono.defer(() -> {
            try {
                return Flux.from(target.send(message)).then();
            } catch (Throwable e) { // An Error too: thrown on, it would be the end of the worker.
                return Mono.error(e);
            }
        });
    }

    private Result sent(Row row, OutboxMessage message) {
        anySent = true;
        return new Result(List.of(fate(row, Fate.SENT, Duration.ZERO, "")), List.of(new Relayed.Sent(message)));
    }

    private Result failed(List<Row> ofKey, int index, OutboxMessage message, Throwable error) {
        anyFailed = true;
        Row row = ofKey.get(index);
        List<Settled> fates = new ArrayList<>();
        Relayed told;
        if (error instanceof PermanentFailure || row.attempts() >= settings.maxAttempts()) {
            fates.add(fate(row, Fate.PARKED, Duration.ZERO, wordsOf(error)));
            told = new Relayed.Parked(message, error);
        } else {
            Duration pause = backoff.after(row.attempts());
            fates.add(fate(row, Fate.AGAIN, pause, wordsOf(error)));
            told = new Relayed.Failed(message, error, pause);
        }
        ofKey.subList(index + 1, ofKey.size())
                .forEach(behind -> fates.add(fate(behind, Fate.RELEASED, Duration.ZERO, "")));
        return new Result(fates, List.of(told));
    }

    private Settled fate(Row row, Fate fate, Duration pause, String reason) {
        return new Settled(Objects.requireNonNull(leases.get(row.number())), fate, pause, reason);
    }

    /** As PostgreSQL can store it. */
    private static String wordsOf(Throwable error) {
        String type = error.getClass().getName();
        String words = error.getMessage() == null ? type : type + ": " + error.getMessage();
        String storable = words.replace('\0', '?');
        return storable.length() <= LONGEST_REASON ? storable : storable.substring(0, LONGEST_REASON);
    }

    /** Tried again for as long as the rows are ours: what was sent and is not written down is sent again. */
    private Flux<Relayed> writeDown(List<Result> results) {
        List<Settled> fates =
                results.stream().flatMap(result -> result.fates().stream()).toList();
        return settle(fates)
                .retryWhen(Retry.backoff(Long.MAX_VALUE, Duration.ofMillis(100))
                        .maxBackoff(Duration.ofSeconds(5))
                        .filter(error -> leaseEndNanos - System.nanoTime() > 0)
                        .doBeforeRetry(signal -> {
                            cannotWriteDown = true;
                            settings.tell(signal.failure());
                        }))
                .doOnSuccess(done -> {
                    cannotWriteDown = false;
                    fates.forEach(fate -> settled.add(fate.lease().number()));
                })
                .thenMany(Flux.fromIterable(results))
                .flatMapIterable(Result::told);
    }

    private Mono<Void> settle(List<Settled> fates) {
        return settings.database().withoutTransaction(connection -> table.settle(connection, kind, fates));
    }

    /** Leaves to others what has no fate. */
    Mono<Void> release() {
        return Mono.defer(() -> {
                    List<Settled> left = taken.stream()
                            .filter(lease -> !settled.contains(lease.number()))
                            .map(lease -> new Settled(lease, Fate.RELEASED, Duration.ZERO, ""))
                            .toList();
                    return left.isEmpty() ? Mono.empty() : settle(left);
                })
                .onErrorResume(error -> {
                    log.debug("rows that were not sent are free again when the lease is over", error);
                    return Mono.empty();
                })
                .doFinally(end -> stop.batchEnded());
    }
}
