package io.onceflux.postgres;

import io.r2dbc.postgresql.api.PostgresqlException;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.R2dbcException;
import io.r2dbc.spi.Row;
import io.r2dbc.spi.Statement;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.LongSummaryStatistics;
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
    private final @Nullable PartitionRange partitions;
    private final String claimInTransaction;
    private final String claimBehindBegin;

    /**
     * @param partitions null where there are no buckets
     * @param longestId how many characters the key column holds
     * @param longestConsumer how many characters the column for the consumer holds
     * @param tellsTransactions whether a {@link MarkedTransaction} differs from others
     */
    CheckedClaimTable(
            ClaimTable table,
            KeyType keyType,
            @Nullable PartitionRange partitions,
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
        this.partitions = partitions;
        this.claimInTransaction = ClaimTableSql.claim(table, keyType);
        this.claimBehindBegin = ClaimTableSql.claimIfMarked(table, keyType);
    }

    /**
     * What became of claims.
     *
     * @param fresh the ids that were fresh
     * @param refused why others are beyond what is kept, by id
     */
    public record Taken(Set<String> fresh, Map<String, String> refused) {

        /** Whether none of these was there before, or refused. */
        public boolean isAllFresh(List<NewClaim> claims) {
            return fresh.size() == claims.size();
        }

        /** Those that were there before. */
        public List<NewClaim> duplicates(List<NewClaim> claims) {
            return claims.stream()
                    .filter(claim -> !fresh.contains(claim.id()) && !refused.containsKey(claim.id()))
                    .toList();
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

    /** A time that could be claimed when the partitions were looked at last; null where there are no buckets. */
    public @Nullable Instant anyTime() {
        return partitions == null ? null : partitions.anyTime();
    }

    /**
     * Claims ids for a consumer in the caller's transaction, all with one statement, and in an order of its own, so that two
     * callers with the same ids cannot deadlock.
     *
     * @param inTransaction a connection with a transaction under way
     * @param consumer the consumer; not stored where the key has one column
     * @param claims with each id once
     * @param lockTimeout set for the rest of the transaction, at no round trip of its own
     * @return what became of them; {@link UnstorableIdException} if the key column cannot hold one of them as it is,
     *     {@link MissingPartitionException}, or the database's own error
     */
    public Mono<Taken> claim(Connection inTransaction, String consumer, List<NewClaim> claims, Duration lockTimeout) {
        return partitions == null
                ? claim(claimInTransaction, inTransaction, consumer, claims, lockTimeout, false)
                        .map(fresh -> new Taken(fresh, Map.of()))
                : partitions
                        .admit(inTransaction, claims)
                        .flatMap(admitted -> admitted.claims().isEmpty()
                                ? Mono.just(new Taken(Set.of(), admitted.refused()))
                                : claim(
                                                claimInTransaction,
                                                inTransaction,
                                                consumer,
                                                admitted.claims(),
                                                lockTimeout,
                                                admitted.looked())
                                        .map(fresh -> new Taken(fresh, admitted.refused())));
    }

    /**
     * Whether {@link #claimTogetherWithBegin} can be used: not where every transaction is DEFERRABLE by default, nor where partitions are to be
     * looked at first.
     */
    public boolean canClaimTogetherWithBegin(List<NewClaim> claims) {
        return tellsTransactions && (partitions == null || partitions.hasAll(claims));
    }

    /**
     * The same, for a claim that is sent behind BEGIN without waiting for its answer; outside of a marked transaction it fails with
     * SQLSTATE 22023.
     *
     * @param connection where {@link MarkedTransaction#begin} was sent before; what that fails with is the caller's to heed
     */
    public Mono<Taken> claimTogetherWithBegin(
            Connection connection, String consumer, List<NewClaim> claims, Duration lockTimeout) {
        return claim(claimBehindBegin, connection, consumer, claims, lockTimeout, false)
                .map(fresh -> new Taken(fresh, Map.of()));
    }

    /**
     * The ids of these, which were not fresh, that are claimed with another fingerprint. One that is null, here or there, equals any.
     *
     * @param inTransaction the transaction in which they were claimed in vain
     */
    public Mono<Set<String>> conflicting(Connection inTransaction, String consumer, List<NewClaim> claims) {
        List<NewClaim> asked =
                claims.stream().filter(claim -> claim.fingerprint() != null).toList();
        if (asked.isEmpty() || !table.hasFingerprints()) {
            return Mono.just(Set.of());
        }
        List<Object> values = new ArrayList<>();
        values.add(asked.stream().map(claim -> storable(claim.id())).distinct().toArray(String[]::new));
        if (!hasOneColumnKey()) {
            values.add(consumer);
        }
        Buckets buckets = table.buckets();
        if (buckets != null) {
            LongSummaryStatistics seconds = asked.stream()
                    .mapToLong(claim -> time(claim).getEpochSecond())
                    .summaryStatistics();
            values.add(buckets.width().literal(Instant.ofEpochSecond(seconds.getMin())));
            values.add(buckets.width().literal(Instant.ofEpochSecond(seconds.getMax())));
        }
        return Queries.rows(
                        inTransaction,
                        ClaimTableSql.fingerprints(table, keyType),
                        row -> Map.entry(
                                Objects.requireNonNull(row.get(0, String.class)),
                                Objects.requireNonNull(row.get(1, Long.class))),
                        values.toArray())
                .collectMap(Map.Entry::getKey, Map.Entry::getValue)
                .map(stored -> asked.stream()
                        .filter(claim -> {
                            Long of = stored.get(storable(claim.id()));
                            return of != null && !of.equals(claim.fingerprint());
                        })
                        .map(NewClaim::id)
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
            List<NewClaim> claims,
            Duration lockTimeout,
            boolean looked) {
        return Mono.defer(() -> {
            Map<String, NewClaim> byCanonical = canonical(claims);
            Statement statement = connection
                    .createStatement(sql)
                    .bind(0, byCanonical.keySet().toArray(String[]::new))
                    .bind(1, Long.toString(lockTimeout.toMillis()));
            int parameters = 2;
            if (!hasOneColumnKey()) {
                statement.bind(parameters++, consumer);
            }
            if (table.hasFingerprints()) {
                statement.bind(parameters++, fingerprints(byCanonical.values()));
            }
            Buckets buckets = table.buckets();
            if (buckets != null) {
                statement.bind(
                        parameters,
                        byCanonical.values().stream()
                                .map(claim -> buckets.width().literal(time(claim)))
                                .toArray(String[]::new));
            }
            return Flux.from(statement.execute())
                    .concatMap(result -> result.map((row, metadata) -> fresh(row, byCanonical)), 0)
                    .single()
                    .onErrorMap(this::isMissingPartition, error -> missingPartition(claims, looked, error));
        });
    }

    private static @Nullable Long[] fingerprints(Collection<NewClaim> claims) {
        return claims.stream().map(NewClaim::fingerprint).toArray(Long[]::new);
    }

    private static Instant time(NewClaim claim) {
        return Objects.requireNonNull(claim.time(), "a claim in a partitioned table needs a time");
    }

    /** By what is stored of the ids, in the order of that: one for all who claim. */
    private Map<String, NewClaim> canonical(List<NewClaim> claims) {
        Map<String, NewClaim> byCanonical = new TreeMap<>();
        claims.forEach(claim -> byCanonical.putIfAbsent(storable(claim.id()), claim));
        return byCanonical;
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

    private static Set<String> fresh(Row row, Map<String, NewClaim> byCanonical) {
        Long count = Objects.requireNonNull(row.get(0, Long.class));
        String[] stored = row.get(1, String[].class);
        if (stored == null) {
            return count == 0
                    ? Set.of()
                    : byCanonical.values().stream().map(NewClaim::id).collect(Collectors.toUnmodifiableSet());
        }
        return Arrays.stream(stored).map(id -> original(id, byCanonical)).collect(Collectors.toUnmodifiableSet());
    }

    private static String original(String stored, Map<String, NewClaim> byCanonical) {
        NewClaim claim = byCanonical.get(stored);
        if (claim == null) {
            throw new UnstorableIdException("the claim table stores the message id in another form than it was given");
        }
        return claim.id();
    }

    private MissingPartitionException missingPartition(List<NewClaim> claims, boolean looked, Throwable error) {
        return partitions == null
                ? MissingPartitionException.forClaim(
                        table, "create it. PostgreSQL says: %s".formatted(error.getMessage()))
                : partitions.refused(claims, looked, error);
    }

    private boolean isMissingPartition(Throwable error) {
        return error instanceof R2dbcException fromServer
                && "23514".equals(fromServer.getSqlState())
                && error instanceof PostgresqlException details
                && details.getErrorDetails().getConstraintName().isEmpty();
    }
}
