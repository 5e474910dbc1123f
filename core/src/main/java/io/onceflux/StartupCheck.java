package io.onceflux;

import io.onceflux.postgres.MissingPartitionException;
import io.onceflux.postgres.Server;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.R2dbcException;
import java.time.Duration;
import java.util.List;
import java.util.OptionalInt;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;
import reactor.util.retry.Retry;

/** Looks once, before the first message, whether the consumer can do what it promises. */
final class StartupCheck {

    private final Settings settings;
    private final ConnectionFactory users;
    private final Transactions transactions;
    private final Claims claims;
    private final List<String> warnings;
    private final @Nullable TableDeadLetters deadLetters;
    private final Progress progress;
    private final Mono<Boolean> passed;
    private volatile boolean tableFit;
    private volatile boolean snapshotIsolation;

    /** @param warnings about the settings, to be told with those about the database */
    StartupCheck(
            Settings settings,
            ConnectionFactory users,
            Transactions transactions,
            Claims claims,
            List<String> warnings,
            @Nullable TableDeadLetters deadLetters,
            Progress progress) {
        this.warnings = warnings;
        this.deadLetters = deadLetters;
        this.settings = settings;
        this.users = users;
        this.transactions = transactions;
        this.claims = claims;
        this.progress = progress;
        this.passed = Mono.defer(this::check)
                .contextWrite(CallersTransaction::without)
                .thenReturn(true)
                .cache(done -> Duration.ofMillis(Long.MAX_VALUE), error -> Duration.ZERO, () -> Duration.ZERO);
    }

    /**
     * Completes when the check has passed, now or before.
     *
     * <p>A database that is away is waited for, up to the start limit; a refused login, a missing table and the like fail at
     * once.
     */
    Mono<Void> passed() {
        return passed.then();
    }

    /** Fails with {@link PendingException} if the check, which goes on, has not passed within the limit. */
    Mono<Void> passedWithin(Duration limit) {
        return passed().timeout(limit, Mono.error(() -> new PendingException(limit)));
    }

    /**
     * For a caller who owns a transaction: the table alone is looked at, on the caller's connection. To wait for another connection
     * could wait for other callers who do the same. It is looked at once.
     */
    Mono<Void> tableIsFit(Connection callers) {
        return tableFit
                ? Mono.empty()
                : claims.verify(callers, settings.consumer())
                        .doOnSuccess(warnings -> tableFit = true)
                        .then();
    }

    /** Whether the consumer's transactions see a snapshot; known once the check has passed. */
    boolean snapshotIsolation() {
        return snapshotIsolation;
    }

    private Mono<Void> check() {
        return Mono.defer(this::poolIsLargeEnough)
                .then(Mono.defer(this::waitForDatabase))
                .doOnSuccess(done -> tableFit = true);
    }

    private Mono<Void> poolIsLargeEnough() {
        OptionalInt size = PoolSize.of(users);
        int needed = settings.lanes() + 1;
        return size.isPresent() && size.getAsInt() < needed
                ? Mono.error(new InvalidSetupException(
                        ("The connection pool holds at most %d connections, but %d lanes need %d: one a lane, and one to probe"
                                        + " the database. Raise the pool's maxSize or lower lanes.")
                                .formatted(size.getAsInt(), settings.lanes(), needed)))
                : Mono.empty();
    }

    private Mono<Void> waitForDatabase() {
        long start = now();
        HeldNow.Waiter waiter = progress.waiter();
        return Limits.within(settings.controlLimit(), Mono.defer(this::lookAtDatabase))
                .retryWhen(Retry.from(failures -> failures.concatMap(
                        failure -> again(start, waiter, failure.failure(), (int) failure.totalRetries() + 1))))
                .doOnSuccess(done -> progress.databaseAnswers())
                .doOnTerminate(waiter::done)
                .doOnCancel(waiter::done);
    }

    /**
     * Shows what no catalogue does: rights beyond the table, triggers and rules that put the row elsewhere. That this key is too
     * long or has no partition says nothing about others.
     */
    private Mono<Void> tryClaim() {
        return transactions
                .inRolledBackTransaction(connection -> Probe.claimNobodys(claims, settings, connection)
                        .flatMap(isStored -> isStored ? Mono.empty() : Mono.error(notStored())))
                .onErrorResume(MissingPartitionException.class, error -> Mono.empty())
                .onErrorResume(Probe::isTooLong, error -> Mono.empty());
    }

    private InvalidSetupException notStored() {
        return new InvalidSetupException(
                ("A trial claim in %s was not stored: a trigger or rule of the table takes the row away, so every message would"
                                + " count as a duplicate. Remove it.")
                        .formatted(claims));
    }

    private Mono<Void> lookAtDatabase() {
        return transactions
                .withoutTransaction(connection -> claims.verify(connection, settings.consumer())
                        .doOnNext(ofDatabase -> ofDatabase.forEach(settings.listener()::onWarning))
                        .doOnNext(ofDatabase -> warnings.forEach(settings.listener()::onWarning))
                        .then(Server.usesSnapshots(connection)))
                .doOnNext(serverDoes -> snapshotIsolation = switch (settings.isolation()) {
                    case DEFAULT -> serverDoes;
                    case REPEATABLE_READ, SERIALIZABLE -> true;
                    case READ_COMMITTED, READ_UNCOMMITTED -> false;
                })
                .then(Mono.defer(this::tryClaim))
                .then(Mono.defer(() -> deadLetters == null ? Mono.empty() : deadLetters.verify()));
    }

    private Mono<Long> again(long start, HeldNow.Waiter waiter, Throwable error, int failures) {
        String state = SqlStates.stateOf(error);
        if (error instanceof InvalidSetupException) {
            return Mono.error(error);
        }
        if (SqlStates.isRefusedLogin(state)) {
            return Mono.error(new InvalidSetupException(
                    "PostgreSQL refuses the login (%s): check user, password and database of the ConnectionFactory. It said: %s"
                            .formatted(state, Causes.root(error).getMessage()),
                    error));
        }
        if (!mayPass(error)) {
            return Mono.error(new InvalidSetupException(
                    "The start-up check failed%s: %s"
                            .formatted(
                                    state == null ? "" : " (" + state + ")",
                                    Causes.root(error).getMessage()),
                    error));
        }
        Duration pause =
                settings.failurePolicy().backoff(FailureKind.INFRASTRUCTURE).after(failures);
        if (now() + pause.toMillis() - start > settings.startLimit().toMillis()) {
            return Mono.error(new InvalidSetupException(
                    "PostgreSQL could not be reached for %s s: check host and port of the ConnectionFactory, and whether the"
                                    .formatted(settings.startLimit().toSeconds())
                            + " server runs. It said: " + Causes.root(error).getMessage(),
                    error));
        }
        waiter.waits(FailureKind.INFRASTRUCTURE, error);
        return Mono.delay(pause);
    }

    private static boolean mayPass(Throwable error) {
        R2dbcException fromDatabase = Causes.find(error, R2dbcException.class);
        return error instanceof TimeoutException
                || Causes.has(error, AttemptConnection.NoConnectionException.class)
                || (fromDatabase != null && SqlStates.kindOf(fromDatabase) == FailureKind.INFRASTRUCTURE);
    }

    private static long now() {
        return TimeUnit.NANOSECONDS.toMillis(System.nanoTime());
    }

    /** The database has not been reached since the consumer was made, for as long as a caller can wait. */
    static final class PendingException extends RuntimeException {
        PendingException(Duration limit) {
            super("the database could not be reached for the start-up check within %d ms".formatted(limit.toMillis()));
        }
    }
}
