package io.onceflux.postgres;

import io.r2dbc.spi.Connection;
import reactor.core.publisher.Mono;

/** A lock of the server's that stands for something else than a row, and belongs to a transaction. */
public final class AdvisoryLock {

    /** The transaction may then be idle for as long as it likes. */
    private static final String TAKE = """
            SELECT pg_try_advisory_xact_lock($1)
            FROM (SELECT set_config('idle_in_transaction_session_timeout', '0', true) OFFSET 0) AS unlimited""";

    private final long number;

    public AdvisoryLock(long number) {
        this.number = number;
    }

    /** Takes it for the rest of the transaction, if nobody has it. */
    public Mono<Boolean> take(Connection inTransaction) {
        return Queries.rows(inTransaction, TAKE, row -> Boolean.TRUE.equals(row.get(0, Boolean.class)), number)
                .single();
    }

    /** Fails if the connection that it was taken on is gone, and the lock with it. */
    public static Mono<Void> requireThere(Connection inTransaction) {
        return Queries.rows(inTransaction, "SELECT 1", row -> row).then();
    }
}
