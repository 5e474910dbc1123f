package io.onceflux.postgres;

import io.r2dbc.spi.Connection;
import reactor.core.publisher.Mono;

/** Runs SQL that makes tables, one instance at a time: two that create a table at once would get an error from the catalogue. */
final class SchemaChange {

    /** Any number will do, as long as all instances take the same one. */
    private static final long LOCK = 0x6F6E_6365_666C_7578L;

    private SchemaChange() {}

    static Mono<Void> run(Connection connection, String sql) {
        return Mono.usingWhen(
                Mono.from(connection.beginTransaction()).thenReturn(connection),
                inTransaction -> Queries.execute(inTransaction, "SELECT pg_advisory_xact_lock($1)", LOCK)
                        .then(Queries.execute(inTransaction, sql)),
                Connection::commitTransaction,
                (inTransaction, error) -> inTransaction.rollbackTransaction(),
                Connection::rollbackTransaction);
    }
}
