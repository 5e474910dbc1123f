package io.onceflux;

import io.onceflux.postgres.MissingPartitionException;
import io.onceflux.postgres.UnstorableIdException;
import io.r2dbc.spi.Connection;
import java.time.Duration;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import reactor.core.publisher.Mono;
import reactor.util.retry.Retry;

/** Asks the database whether it takes writes: a claim that nobody else makes, in a transaction that is rolled back. */
final class Probe {

    /** So many random characters no message has by chance. */
    private static final int SURELY_NOBODYS = 9;

    private final Settings settings;
    private final Transactions transactions;
    private final Claims claims;
    private final Progress progress;

    Probe(Settings settings, Transactions transactions, Claims claims, Progress progress) {
        this.settings = settings;
        this.transactions = transactions;
        this.claims = claims;
        this.progress = progress;
    }

    /** Whether the database takes writes now. Never an error. */
    Mono<Boolean> answers() {
        return write().thenReturn(true).onErrorReturn(false);
    }

    /** Completes when the database takes writes; looks again and again, with pauses. */
    Mono<Void> untilAnswers() {
        return Mono.defer(() -> {
            HeldNow.Waiter waiter = progress.waiter();
            return write().retryWhen(Retry.from(failures -> failures.concatMap(failure -> {
                        waiter.waits(heldFor(failure.failure()), failure.failure());
                        Duration pause = settings.failurePolicy()
                                .backoff(FailureKind.INFRASTRUCTURE)
                                .after((int) failure.totalRetries() + 1);
                        return Mono.delay(pause);
                    })))
                    .doOnSuccess(done -> progress.databaseAnswers())
                    .doOnTerminate(waiter::done)
                    .doOnCancel(waiter::done);
        });
    }

    /** A claim that nobody else makes has no fault of its own: if it is refused, the set-up is broken. */
    private static FailureKind heldFor(Throwable error) {
        return switch (Classification.byTypeOrState(error)) {
            case PERMANENT, BROKEN_SETUP -> FailureKind.BROKEN_SETUP;
            case INFRASTRUCTURE, CONFLICT, EFFECT -> FailureKind.INFRASTRUCTURE;
        };
    }

    private Mono<Void> write() {
        return Mono.defer(() -> Limits.within(
                        settings.controlLimit(),
                        transactions.inRolledBackTransaction(connection ->
                                claimNobodys(claims, settings, connection).then()))
                .onErrorResume(Probe::isTooLong, error -> Mono.empty())
                // It has answered: which partitions there are says nothing about the messages of others.
                .onErrorResume(MissingPartitionException.class, error -> Mono.empty()));
    }

    /**
     * Claims a key that no message has, whichever length of it fits into the key column.
     *
     * @return whether the row is there; taken for there if the key is so short that a message may have it
     */
    static Mono<Boolean> claimNobodys(Claims claims, Settings settings, Connection inTransaction) {
        return claimNobodys(claims, settings, inTransaction, nobodysKey(settings));
    }

    private static Mono<Boolean> claimNobodys(
            Claims claims, Settings settings, Connection inTransaction, MessageKey key) {
        int length = key.id().length();
        return claims.tryOut(inTransaction, key, settings.lockTimeout())
                .map(stored -> stored || length < SURELY_NOBODYS)
                .onErrorResume(
                        error -> length > 1 && Causes.has(error, UnstorableIdException.class),
                        error -> claimNobodys(
                                claims,
                                settings,
                                inTransaction,
                                new MessageKey(key.consumer(), key.id().substring(0, length / 2))));
    }

    /** A key that no message has. Not from UUID.randomUUID: its SecureRandom reads a file, and this may be an event loop. */
    static MessageKey nobodysKey(Settings settings) {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        return new MessageKey(settings.consumer(), new UUID(random.nextLong(), random.nextLong()).toString());
    }

    /** Whether a key is too long for where claims are kept, as the database says; it has answered all the same. */
    static boolean isTooLong(Throwable error) {
        return "22001".equals(SqlStates.stateOf(error));
    }
}
