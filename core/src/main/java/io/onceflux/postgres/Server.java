package io.onceflux.postgres;

import io.r2dbc.spi.Connection;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import reactor.core.publisher.Mono;

/** What the server does where a transaction does not say otherwise. */
public final class Server {

    private static final int OLDEST_VERSION = 120_000;
    private static final Set<String> SNAPSHOT_LEVELS = Set.of("repeatable read", "serializable");

    private Server() {}

    /** {@link UnfitTableException} where the server is older than PostgreSQL 12. */
    static Mono<Void> requireVersion(Connection connection) {
        return Queries.rows(
                        connection,
                        "SELECT current_setting('server_version_num')::int",
                        row -> Objects.requireNonNull(row.get(0, Integer.class)))
                .doOnNext(version -> {
                    if (version < OLDEST_VERSION) {
                        throw new UnfitTableException("PostgreSQL 12 or newer is needed, this server is version %d"
                                .formatted(version / 10_000));
                    }
                })
                .then();
    }

    /** Fails where the connection is gone, and in a transaction in which a statement has failed, whether anybody heeded it or not. */
    public static Mono<Void> requireAnswer(Connection connection) {
        return Queries.rows(connection, "SELECT 1", row -> row).then();
    }

    /** What a person should know of the server; a sentence each. */
    public static Mono<List<String>> warnings(Connection connection) {
        return Queries.rows(
                        connection,
                        "SELECT current_setting('synchronous_commit')",
                        row -> Objects.requireNonNull(row.get(0, String.class)))
                .filter("off"::equals)
                .map(off -> "synchronous_commit is off: a crash of PostgreSQL can lose effects that were already"
                        + " acknowledged; set it to on for this role or database.")
                .collectList();
    }

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
