package io.onceflux;

import io.onceflux.Retention.Progress;
import io.onceflux.postgres.ClaimPartitions;
import io.onceflux.postgres.ClaimPartitions.Found;
import io.onceflux.postgres.ClaimPartitions.Partition;
import io.onceflux.postgres.ClaimTable;
import io.onceflux.postgres.LockWaits;
import io.r2dbc.spi.Connection;
import java.time.Duration;
import java.util.List;
import java.util.function.Function;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.util.retry.Retry;

/** {@link Retention} of a table with partitions: makes those that will be needed, and drops those that are old. */
final class DroppedPartitions {

    /** How long claims may wait for a partition to be taken out, where PostgreSQL cannot do it beside them. */
    static final int LOCK_MILLIS = 100;

    /** How often that is tried in a run. */
    static final int TRIES = 20;

    private final Transactions transactions;
    private final ClaimPartitions partitions;
    private final Duration kept;
    private final Duration lockTimeout;

    DroppedPartitions(Transactions transactions, ClaimTable table, Duration kept, Duration lockTimeout) {
        this.transactions = transactions;
        this.partitions = new ClaimPartitions(table);
        this.kept = kept;
        this.lockTimeout = lockTimeout;
    }

    Flux<Progress> run() {
        return look().doOnNext(partitions::requireManageable)
                .flatMapMany(found -> SoleRun.of(
                        transactions,
                        found.lock(),
                        stillAlone -> look().flatMapMany(now -> make(now, stillAlone)
                                        .thenMany(dropLeftBehind(now))
                                        .thenMany(drop(now, stillAlone)))
                                .concatWith(Mono.defer(this::requireNoGap))));
    }

    /** What one before others held is not known here, so it is not made again; but a person should know. */
    private Mono<Progress> requireNoGap() {
        return look().doOnNext(partitions::requireNoGap).then(Mono.empty());
    }

    private Mono<Found> look() {
        return transactions.withoutTransaction(
                connection -> Limits.within(Retention.TIME_LIMIT, partitions.look(connection)));
    }

    private Mono<Void> make(Found found, Mono<Void> stillAlone) {
        return Flux.fromIterable(partitions.missing(found, kept))
                .concatMap(missing -> stillAlone.then(
                        inTransaction(lockTimeout, connection -> partitions.make(connection, found, missing))))
                .then();
    }

    /** Somebody was interrupted between taking them out and dropping them. */
    private Mono<Void> dropLeftBehind(Found found) {
        return transactions
                .withoutTransaction(connection -> Limits.within(
                        Retention.TIME_LIMIT,
                        partitions.leftBehind(connection, found).collectList()))
                .flatMapIterable(names -> names)
                .concatMap(this::drop)
                .then();
    }

    private Flux<Progress> drop(Found found, Mono<Void> stillAlone) {
        List<Partition> old = partitions.old(found, kept);
        return old.isEmpty()
                ? Flux.just(new Progress(0, 1))
                : Flux.fromIterable(old)
                        .concatMap(partition -> stillAlone
                                .then(Mono.defer(() -> drop(found, partition)))
                                .thenReturn(Math.max(0, partition.rows())))
                        .scan(0L, Long::sum)
                        .skip(1)
                        .index((before, removed) -> new Progress(removed, (before + 1.0) / old.size()));
    }

    private Mono<Void> drop(Found found, Partition partition) {
        return inTransaction(lockTimeout, connection -> partitions.markOld(connection, found, partition))
                .then(Mono.defer(() -> detach(found, partition)))
                .then(Mono.defer(() -> drop(partition.name())));
    }

    private Mono<Void> detach(Found found, Partition partition) {
        return found.detachesConcurrently()
                ? transactions.withoutTransaction(connection ->
                        Limits.within(Retention.TIME_LIMIT, partitions.detachConcurrently(connection, partition)))
                : inTransaction(Duration.ofMillis(LOCK_MILLIS), connection -> partitions.detach(connection, partition))
                        .retryWhen(Retry.backoff(TRIES - 1, Duration.ofMillis(LOCK_MILLIS))
                                .maxBackoff(Duration.ofSeconds(2))
                                .filter(error -> "55P03".equals(SqlStates.stateOf(error)))
                                .onRetryExhaustedThrow((spec, last) -> last.failure()));
    }

    private Mono<Void> drop(String name) {
        return inTransaction(lockTimeout, connection -> partitions.drop(connection, name));
    }

    private Mono<Void> inTransaction(Duration waits, Function<Connection, Mono<Void>> work) {
        return transactions.inTransaction(connection -> Limits.within(
                Retention.TIME_LIMIT,
                LockWaits.bound(connection, waits).then(Mono.defer(() -> work.apply(connection)))));
    }
}
