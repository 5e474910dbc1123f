package io.onceflux.postgres;

import io.r2dbc.postgresql.api.PostgresqlException;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.R2dbcException;
import io.r2dbc.spi.Row;
import io.r2dbc.spi.Statement;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** A claim table that was found fit, on the server that it was found on. Made by {@link ClaimTable#check}. */
public final class CheckedClaimTable {

    private final ClaimTable table;
    private final KeyType keyType;
    private final int longestId;
    private final int longestConsumer;
    private final String identity;
    private final List<String> warnings;
    private final String claimSql;
    private final boolean tellsTransactions;
    private final String claimIfMarkedSql;

    /**
     * @param longestId how many characters the key column holds
     * @param longestConsumer how many characters the column for the consumer holds
     * @param tellsTransactions whether a {@link MarkedTransaction} differs from others
     */
    CheckedClaimTable(
            ClaimTable table,
            KeyType keyType,
            int longestId,
            int longestConsumer,
            String identity,
            boolean tellsTransactions,
            List<String> warnings) {
        this.table = table;
        this.keyType = keyType;
        this.longestId = longestId;
        this.longestConsumer = longestConsumer;
        this.identity = identity;
        this.warnings = List.copyOf(warnings);
        this.claimSql = ClaimTableSql.claim(table, keyType);
        this.tellsTransactions = tellsTransactions;
        this.claimIfMarkedSql = ClaimTableSql.claimIfMarked(table, keyType);
    }

    /** Identifies the table in its database system; the same whichever way the table is named. */
    public String identity() {
        return identity;
    }

    /** Whether the key has no column for the consumer. */
    public boolean hasOneColumnKey() {
        return table.consumerColumn() == null;
    }

    /** Throws {@link UnfitTableException} if the column for the consumer cannot hold a consumer's name as it is. */
    public void requireHolds(String consumer) {
        int length = characters(consumer);
        if (length > longestConsumer) {
            throw new UnfitTableException(
                    ("Column %s of table %s holds %d characters, but the name of consumer '%s' has %d. Make it longer:"
                                    + " ALTER TABLE %s ALTER COLUMN %s TYPE text;")
                            .formatted(
                                    table.consumerColumn(),
                                    table,
                                    longestConsumer,
                                    consumer,
                                    length,
                                    table.quotedName(),
                                    table.keyColumns().get(0).quoted()));
        }
    }

    /** What works but is likely not what is wanted; a sentence each. */
    public List<String> warnings() {
        return warnings;
    }

    /**
     * Claims ids for a consumer in the caller's transaction, all with one statement, and in an order of its own, so that two
     * callers with the same ids cannot deadlock.
     *
     * @param inTransaction a connection with a transaction under way
     * @param consumer the consumer; not stored where the key has one column
     * @param ids the ids, each once
     * @param lockTimeout set for the rest of the transaction, at no round trip of its own
     * @return the ids that were fresh; {@link UnstorableIdException} if the key column cannot hold one of them as it is,
     *     {@link MissingPartitionException}, or the database's own error
     */
    public Mono<Set<String>> claim(
            Connection inTransaction, String consumer, Collection<String> ids, Duration lockTimeout) {
        return claim(claimSql, inTransaction, consumer, ids, lockTimeout);
    }

    /** Whether {@link #claimTogetherWithBegin} can be used: not where every transaction is DEFERRABLE by default. */
    public boolean canClaimTogetherWithBegin() {
        return tellsTransactions;
    }

    /**
     * The same, for a claim that is sent behind BEGIN without waiting for its answer; outside of a marked transaction it fails with
     * SQLSTATE 22023.
     *
     * @param connection where {@link MarkedTransaction#begin} was sent before; what that fails with is the caller's to heed
     */
    public Mono<Set<String>> claimTogetherWithBegin(
            Connection connection, String consumer, Collection<String> ids, Duration lockTimeout) {
        return claim(claimIfMarkedSql, connection, consumer, ids, lockTimeout);
    }

    private Mono<Set<String>> claim(
            String sql, Connection connection, String consumer, Collection<String> ids, Duration lockTimeout) {
        return Mono.defer(() -> {
            Map<String, String> idByCanonical = new TreeMap<>();
            ids.forEach(id -> idByCanonical.putIfAbsent(storable(id), id));
            Statement statement = connection
                    .createStatement(sql)
                    .bind(0, idByCanonical.keySet().toArray(String[]::new))
                    .bind(1, Long.toString(lockTimeout.toMillis()));
            if (!hasOneColumnKey()) {
                statement.bind(2, consumer);
            }
            return Flux.from(statement.execute())
                    .concatMap(result -> result.map((row, metadata) -> fresh(row, idByCanonical)), 0)
                    .single()
                    .onErrorMap(this::isMissingPartition, error -> new MissingPartitionException(table, error));
        });
    }

    /** PostgreSQL refuses what is too long for a column, except for blanks, which it cuts without an error. */
    private String storable(String id) {
        String canonical = keyType.canonical(id);
        int length = characters(canonical);
        if (length > longestId) {
            throw new UnstorableIdException("the message id has %d characters, but column %s of claim table %s holds %d"
                    .formatted(length, table.keyColumn(), table, longestId));
        }
        return canonical;
    }

    private static int characters(String text) {
        return text.codePointCount(0, text.length());
    }

    private static Set<String> fresh(Row row, Map<String, String> idByCanonical) {
        Long count = Objects.requireNonNull(row.get(0, Long.class));
        String[] stored = row.get(1, String[].class);
        if (stored == null) {
            return count == 0 ? Set.of() : Set.copyOf(idByCanonical.values());
        }
        return Arrays.stream(stored).map(id -> original(id, idByCanonical)).collect(Collectors.toUnmodifiableSet());
    }

    private static String original(String stored, Map<String, String> idByCanonical) {
        String id = idByCanonical.get(stored);
        if (id == null) {
            throw new UnstorableIdException("the claim table stores the message id in another form than it was given");
        }
        return id;
    }

    private boolean isMissingPartition(Throwable error) {
        return error instanceof R2dbcException fromServer
                && "23514".equals(fromServer.getSqlState())
                && error instanceof PostgresqlException details
                && details.getErrorDetails().getConstraintName().isEmpty();
    }
}
