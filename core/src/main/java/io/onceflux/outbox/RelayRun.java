package io.onceflux.outbox;

import io.onceflux.Backoff;
import io.onceflux.InvalidSetupException;
import io.onceflux.postgres.OutboxTable;
import io.onceflux.postgres.UnfitTableException;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.util.retry.Retry;

/** One run of a {@link Relay}: its workers, what wakes them, and what cleans up behind them. */
final class RelayRun {

    private static final int DELETED_AT_ONCE = 5_000;
    private static final Duration LONGEST_BETWEEN_CLEANINGS = Duration.ofMinutes(1);
    private static final Duration BETWEEN_LOOKS = Duration.ofSeconds(30);
    private static final Backoff AFTER_ERRORS = Backoff.between(Duration.ofMillis(200), Duration.ofSeconds(10));

    private final RelaySettings settings;
    private final RelayStop stop;

    RelayRun(RelaySettings settings, RelayStop stop) {
        this.settings = settings;
        this.stop = stop;
    }

    Flux<Relayed> run() {
        if (!stop.begin()) {
            return Flux.error(new IllegalStateException("the relay runs already"));
        }
        return checkedTable()
                .takeUntilOther(stop.asked())
                .flatMapMany(this::workers)
                .doFinally(end -> stop.end());
    }

    private Flux<Relayed> workers(OutboxTable table) {
        List<Flux<Relayed>> workers = new ArrayList<>();
        WakeUps appended = new WakeUps();
        for (String kind : settings.targets().keySet()) {
            WakeUps ofKind = new WakeUps();
            workers.add(new RelayWorker(settings, table, kind, stop, appended, ofKind).run());
            for (int further = 1; further < settings.workers(); further++) {
                workers.add(new RelayWorker(settings, table, kind, stop, ofKind, ofKind).run());
            }
        }
        Mono<Void> beside = Mono.when(
                cleaning(table),
                settings.outbox().appended().doOnNext(any -> appended.wake()).then(),
                listening(table, appended),
                watching(table));
        return Flux.merge(Flux.fromIterable(workers), workers.size()).takeUntilOther(beside.then(Mono.never()));
    }

    /** A database that is away is waited for. */
    private Mono<OutboxTable> checkedTable() {
        return settings.database()
                .withoutTransaction(
                        connection -> settings.outbox().table().check(connection, settings.keepSent() != null))
                .onErrorMap(
                        UnfitTableException.class, e -> new InvalidSetupException(String.valueOf(e.getMessage()), e))
                .retryWhen(Retry.from(failures -> failures.concatMap(failure -> {
                    if (failure.failure() instanceof InvalidSetupException) {
                        return Mono.error(failure.failure());
                    }
                    settings.tell(failure.failure());
                    return Mono.delay(AFTER_ERRORS.after((int) failure.totalRetries() + 1));
                })));
    }

    /** Removes what was sent long enough ago. */
    private Mono<Void> cleaning(OutboxTable table) {
        Duration kept = settings.keepSent();
        if (kept == null) {
            return Mono.empty();
        }
        Duration quarter = kept.dividedBy(4);
        Duration between = quarter.compareTo(LONGEST_BETWEEN_CLEANINGS) < 0 ? quarter : LONGEST_BETWEEN_CLEANINGS;
        Mono<Long> some = settings.database()
                .withoutTransaction(connection -> table.deleteSent(connection, kept, DELETED_AT_ONCE));
        return some.expand(deleted -> deleted == DELETED_AT_ONCE ? some : Mono.empty())
                .then()
                .onErrorResume(this::told)
                .repeatWhen(ends -> ends.concatMap(end -> Mono.delay(between)))
                .then();
    }

    /** Asks how the table is doing, where somebody wants to know. */
    private Mono<Void> watching(OutboxTable table) {
        if (settings.listeners().isEmpty()) {
            return Mono.empty();
        }
        return settings.database()
                .withoutTransaction(table::state)
                .doOnNext(state -> settings.tellAll(listener -> listener.onState(state)))
                .then()
                .onErrorResume(this::told)
                .repeatWhen(ends -> ends.concatMap(end -> Mono.delay(BETWEEN_LOOKS)))
                .then();
    }

    private Mono<Void> told(Throwable error) {
        return Mono.fromRunnable(() -> settings.tell(error));
    }

    /** Wakes a worker of each kind when another process says that there is something. */
    private Mono<Void> listening(OutboxTable table, WakeUps wakeUps) {
        ConnectionFactory direct = settings.listenOn();
        if (direct == null) {
            return Mono.empty();
        }
        return Flux.usingWhen(
                        direct.create(),
                        connection -> table.told(connection).doOnNext(any -> wakeUps.wake()),
                        Connection::close)
                .then()
                .onErrorMap(
                        IllegalArgumentException.class,
                        e -> new InvalidSetupException("listenOn: " + e.getMessage(), e))
                .onErrorResume(error -> !(error instanceof InvalidSetupException), this::told)
                .repeatWhen(ends -> ends.concatMap(end -> Mono.delay(AFTER_ERRORS.after(4))))
                .then();
    }
}
