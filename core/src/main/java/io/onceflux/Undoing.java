package io.onceflux;

import io.onceflux.postgres.Server;
import reactor.core.publisher.Mono;

/** Undoes what an effect has written, where it turns out that nothing happens, and leaves the transaction to be committed. */
final class Undoing {

    private static final String BEFORE = "onceflux_before_effect";

    private Undoing() {}

    /** The work; if it affects no row, what it wrote is undone. Where a statement of it has failed unnoticed, that is an error. */
    static Mono<Long> whereNone(Mono<Long> rowsAffected, AttemptConnection connection) {
        return Mono.from(connection.createSavepoint(BEFORE))
                .then(rowsAffected)
                .flatMap(rows -> rows > 0 ? Mono.just(rows) : undone(connection).thenReturn(rows));
    }

    /** A statement is refused in a transaction that has failed (25P02), which the step back would make good. */
    private static Mono<Void> undone(AttemptConnection connection) {
        return Server.requireAnswer(connection)
                .then(Mono.defer(() -> Mono.from(connection.rollbackTransactionToSavepoint(BEFORE))));
    }
}
