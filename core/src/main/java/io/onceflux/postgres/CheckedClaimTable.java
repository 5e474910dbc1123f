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
import org.jspecify.annotations.Nullable;
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
    private final boolean tellsTransactions;
    private final ClaimSql withoutFingerprints;
    private final ClaimSql withFingerprints;

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
        this.tellsTransactions = tellsTransactions;
        this.withoutFingerprints = ClaimSql.of(table, keyType, false);
        this.withFingerprints = ClaimSql.of(table, keyType, table.hasFingerprints());
    }

    /** The statement that claims, in a transaction that is under way and behind BEGIN. */
    private record ClaimSql(String inTransaction, String behindBegin) {
        static ClaimSql of(ClaimTable table, KeyType type, boolean withFingerprints) {
            return new ClaimSql(
                    ClaimTableSql.claim(table, type, withFingerprints),
                    ClaimTableSql.claimIfMarked(table, type, withFingerprints));
        }
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
        return Mono.defer(() ->
                claim(withoutFingerprints.inTransaction, inTransaction, consumer, canonical(ids), null, lockTimeout));
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
        return Mono.defer(
                () -> claim(withoutFingerprints.behindBegin, connection, consumer, canonical(ids), null, lockTimeout));
    }

    /**
     * The same as {@link #claim(Connection, String, Collection, Duration)}, with fingerprints; the table has a column for them.
     *
     * @param fingerprints by id; null where there is none
     */
    public Mono<Set<String>> claim(
            Connection inTransaction, String consumer, Map<String, @Nullable Long> fingerprints, Duration lockTimeout) {
        return claim(withFingerprints.inTransaction, inTransaction, consumer, fingerprints, lockTimeout);
    }

    /** The same, behind BEGIN, as {@link #claimTogetherWithBegin(Connection, String, Collection, Duration)}. */
    public Mono<Set<String>> claimTogetherWithBegin(
            Connection connection, String consumer, Map<String, @Nullable Long> fingerprints, Duration lockTimeout) {
        return claim(withFingerprints.behindBegin, connection, consumer, fingerprints, lockTimeout);
    }

    /**
     * Which of these ids, which were not fresh, are claimed with another fingerprint. One that is null, here or there, equals any.
     *
     * @param inTransaction the transaction in which they were claimed in vain
     */
    public Mono<Set<String>> conflicting(
            Connection inTransaction, String consumer, Map<String, @Nullable Long> fingerprints) {
        List<String> asked = fingerprints.keySet().stream()
                .filter(id -> fingerprints.get(id) != null)
                .toList();
        if (asked.isEmpty()) {
            return Mono.just(Set.of());
        }
        String[] ids = asked.stream().map(this::storable).distinct().toArray(String[]::new);
        Object[] values = hasOneColumnKey() ? new Object[] {ids} : new Object[] {ids, consumer};
        return Queries.rows(
                        inTransaction,
                        ClaimTableSql.fingerprints(table, keyType),
                        row -> Map.entry(
                                Objects.requireNonNull(row.get(0, String.class)),
                                Objects.requireNonNull(row.get(1, Long.class))),
                        values)
                .collectMap(Map.Entry::getKey, Map.Entry::getValue)
                .map(stored -> asked.stream()
                        .filter(id -> {
                            Long of = stored.get(storable(id));
                            return of != null && !of.equals(fingerprints.get(id));
                        })
                        .collect(Collectors.toUnmodifiableSet()));
    }

    /** Whether there is any claim of a consumer; where the key has one column, any at all. */
    public Mono<Boolean> hasAny(Connection connection, String consumer) {
        return Queries.rows(
                        connection,
                        ClaimTableSql.hasAny(table),
                        row -> Objects.requireNonNull(row.get(0, Boolean.class)),
                        hasOneColumnKey() ? new Object[0] : new Object[] {consumer})
                .next();
    }

    private Mono<Set<String>> claim(
            String sql,
            Connection connection,
            String consumer,
            Map<String, @Nullable Long> fingerprints,
            Duration lockTimeout) {
        return Mono.defer(() -> {
            Map<String, String> idByCanonical = canonical(fingerprints.keySet());
            @Nullable
            Long[] inOrder =
                    idByCanonical.values().stream().map(fingerprints::get).toArray(Long[]::new);
            return claim(sql, connection, consumer, idByCanonical, inOrder, lockTimeout);
        });
    }

    private Mono<Set<String>> claim(
            String sql,
            Connection connection,
            String consumer,
            Map<String, String> idByCanonical,
            @Nullable Long @Nullable [] fingerprints,
            Duration lockTimeout) {
        Statement statement = connection
                .createStatement(sql)
                .bind(0, ids(idByCanonical))
                .bind(1, Long.toString(lockTimeout.toMillis()));
        if (!hasOneColumnKey()) {
            statement.bind(2, consumer);
        }
        if (fingerprints != null) {
            statement.bind(hasOneColumnKey() ? 2 : 3, fingerprints);
        }
        return Flux.from(statement.execute())
                .concatMap(result -> result.map((row, metadata) -> fresh(row, idByCanonical)), 0)
                .single()
                .onErrorMap(this::isMissingPartition, error -> new MissingPartitionException(table, error));
    }

    private static String[] ids(Map<String, String> idByCanonical) {
        return idByCanonical.keySet().toArray(String[]::new);
    }

    /** The ids by what is stored of them, in the order of that: one for all who claim. */
    private Map<String, String> canonical(Collection<String> ids) {
        Map<String, String> idByCanonical = new TreeMap<>();
        ids.forEach(id -> idByCanonical.putIfAbsent(storable(id), id));
        return idByCanonical;
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
