package io.onceflux.postgres;

import io.r2dbc.spi.Connection;
import java.util.Objects;
import java.util.Set;
import reactor.core.publisher.Mono;

/** What the server does where a transaction does not say otherwise. */
public final class Server {

    private static final Set<String> SNAPSHOT_LEVELS = Set.of("repeatable read", "serializable");

    private Server() {}

    /** Whether transactions of this connection see a snapshot (REPEATABLE READ or SERIALIZABLE) unless they ask otherwise. */
    public static Mono<Boolean> usesSnapshots(Connection connection) {
        return Queries.rows(
                        connection,
                        "SELECT current_setting('default_transaction_isolation')",
                        row -> Objects.requireNonNull(row.get(0, String.class)))
                .next()
                .map(SNAPSHOT_LEVELS::contains);
    }
}
