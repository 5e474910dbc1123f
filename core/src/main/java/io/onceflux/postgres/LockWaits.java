package io.onceflux.postgres;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Row;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import reactor.core.publisher.Mono;

/** Limits the waits for locks in transactions that make no claim. */
public final class LockWaits {

    private static final String SET = "SELECT set_config('lock_timeout', %s, true)";
    private static final String BOUND = SET.formatted("$1");
    private static final String BOUND_IF_MARKED = SET.formatted(MarkedTransaction.ifUnderWay("$1"));

    private final boolean tellsTransactions;
    private final List<String> warnings;

    private LockWaits(boolean tellsTransactions, List<String> warnings) {
        this.tellsTransactions = tellsTransactions;
        this.warnings = warnings;
    }

    /**
     * Looks what the server can do.
     *
     * @return {@link UnfitTableException} with a sentence if it is too old
     */
    public static Mono<LockWaits> check(Connection connection) {
        return Server.requireVersion(connection)
                .then(Queries.rows(
                                connection,
                                "SELECT current_setting('default_transaction_deferrable')",
                                LockWaits::isOff)
                        .single())
                .zipWith(Server.warnings(connection), LockWaits::new);
    }

    private static boolean isOff(Row row) {
        return "off".equals(Objects.requireNonNull(row.get(0, String.class)));
    }

    /** What works but is likely not what is wanted; a sentence each. */
    public List<String> warnings() {
        return warnings;
    }

    /** Sets {@code lock_timeout} for the rest of the transaction. */
    public static Mono<Void> bound(Connection inTransaction, Duration lockTimeout) {
        return Queries.rows(inTransaction, BOUND, row -> true, Long.toString(lockTimeout.toMillis()))
                .then();
    }

    /** Whether {@link #boundTogetherWithBegin} can be used: not where every transaction is DEFERRABLE by default. */
    public boolean canBoundTogetherWithBegin() {
        return tellsTransactions;
    }

    /**
     * The same, sent behind BEGIN without waiting for its answer; outside of a marked transaction it fails with SQLSTATE 22023.
     *
     * @param connection where {@link MarkedTransaction#begin} was sent before
     */
    public Mono<Void> boundTogetherWithBegin(Connection connection, Duration lockTimeout) {
        return Queries.rows(connection, BOUND_IF_MARKED, row -> true, Long.toString(lockTimeout.toMillis()))
                .then();
    }

    /**
     * Writes to the log of the server, in a transaction that is going to be rolled back; it says whether the server takes writes, but not
     * whether there is room for a row. Source: https://www.postgresql.org/docs/current/functions-admin.html#FUNCTIONS-REPLICATION
     */
    public static Mono<Void> tryWrite(Connection inTransaction) {
        return Queries.rows(
                        inTransaction,
                        "SELECT pg_logical_emit_message(true, 'onceflux', 'does the server take writes?') IS NOT NULL",
                        row -> true)
                .then();
    }
}
