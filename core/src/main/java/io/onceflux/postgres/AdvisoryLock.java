package io.onceflux.postgres;

import io.r2dbc.spi.Connection;
import reactor.core.publisher.Mono;

/** A lock of the server's that stands for something else than a row, and belongs to a transaction. */
public final class AdvisoryLock {

    /** The transaction may then be idle, and last, for as long as it likes; not every version has both limits. */
    private static final String TAKE = """
            SELECT pg_try_advisory_xact_lock($1)
            FROM (SELECT count(set_config(name, '0', true)) FROM pg_settings
                  WHERE name IN ('idle_in_transaction_session_timeout', 'transaction_timeout') OFFSET 0) AS unlimited""";

    private final long number;

    public AdvisoryLock(long number) {
        this.number = number;
    }

    /** Takes it for the rest of the transaction, if nobody has it. */
    public Mono<Boolean> take(Connection inTransaction) {
        return Queries.rows(inTransaction, TAKE, row -> Boolean.TRUE.equals(row.get(0, Boolean.class)), number)
                .single();
    }
}
