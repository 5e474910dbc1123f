package io.onceflux.postgres;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Row;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * The claims of a table that are older than a time, removed piece by piece. A piece is a range of pages, so that none is looked at twice,
 * whether an old snapshot keeps what was deleted in them or not.
 *
 * <p>The role needs SELECT, UPDATE and DELETE, where there are partitions on each of them: a row is locked before it is deleted.
 */
public final class OldClaims {

    /** PostgreSQL scans a range of ctid from this version on. Source: https://www.postgresql.org/docs/release/14.0/ */
    private static final int SCANS_RANGES = 140_000;

    /** Claims of short keys are not more than twice as many. */
    private static final int CLAIMS_OF_A_PAGE = 50;

    private static final String LOOK = """
            WITH asked AS (SELECT oid, relkind FROM pg_class WHERE oid = to_regclass($1)),
            leaves AS (
                SELECT oid AS relid FROM asked WHERE relkind <> 'p'
                UNION ALL SELECT t.relid FROM asked, pg_partition_tree(asked.oid) t WHERE t.isleaf AND t.relid <> asked.oid
            )
            SELECT format('%I.%I', n.nspname, c.relname) AS name,
                   pg_relation_size(c.oid) / current_setting('block_size')::int AS pages,
                   has_table_privilege(c.oid, 'SELECT') AND has_any_column_privilege(c.oid, 'UPDATE')
                       AND has_table_privilege(c.oid, 'DELETE') AS allowed,
                   current_user::text AS role,
                   (SELECT a.atttypid::regtype::text FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = $3) AS time_type,
                   (now() - make_interval(secs => $2))::text AS oldest_kept,
                   current_setting('server_version_num')::int AS version,
                   hashtextextended('onceflux retention of ' || to_regclass($1)::oid::text || ' ' || $4, 0) AS lock
            FROM leaves JOIN pg_class c ON c.oid = leaves.relid JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE c.relkind = 'r' ORDER BY c.oid""";

    private static final String IS_THERE = "SELECT to_regclass($1) IS NOT NULL";

    private static final String BOUND =
            "SELECT set_config('lock_timeout', $1, true), set_config('synchronize_seqscans', 'off', true)";

    /** Of a range of pages. */
    private static final String IN_RANGE =
            "ctid >= format('(%s,0)', $1::bigint)::tid AND ctid < format('(%s,0)', $2::bigint)::tid";

    /** The same where there is no scan of a range: every place that a row of these pages can have. A row takes 28 bytes at least. */
    private static final String IN_PLACES = """
            ctid = ANY (ARRAY(
                SELECT format('(%s,%s)', page, place)::tid
                FROM generate_series($1::bigint, LEAST($2::bigint, pg_relation_size('$relation')
                         / current_setting('block_size')::int) - 1) AS page,
                     generate_series(1, current_setting('block_size')::int / 28) AS place))""";

    private final ClaimTable table;
    private final Identifier processedAt;
    private final @Nullable String consumer;

    /**
     * The old claims of a table.
     *
     * @param consumer whose claims; null for those of all. A table with a one-column key has one consumer's
     * @throws IllegalArgumentException if the table has no time, or no column for the consumer that is named
     */
    public OldClaims(ClaimTable table, @Nullable String consumer) {
        this.table = table;
        this.consumer = consumer;
        Identifier time = table.processedAtColumn();
        if (time == null) {
            throw new IllegalArgumentException(
                    "table %s has no time of its claims, so old ones cannot be found".formatted(table));
        }
        if (consumer != null && table.consumerColumn() == null) {
            throw new IllegalArgumentException(
                    "table %s has no column for the consumer: all its claims are of one".formatted(table));
        }
        this.processedAt = time;
    }

    /**
     * A range of pages of the table, or of a partition of it, that is to be looked through.
     *
     * @param relation quoted
     * @param from the first page
     * @param to the page behind the last
     */
    public record Piece(String relation, long from, long to) {}

    /**
     * What there is to do now.
     *
     * @param oldestKept the time before which claims are old, by the server's clock
     * @param lock what all who remove these claims take
     * @param scansRanges whether the server can begin to scan within a table
     * @param pieces in the order of the pages; none for a table without pages
     */
    public record Plan(String oldestKept, long lock, boolean scansRanges, List<Piece> pieces) {}

    /**
     * Looks at the table.
     *
     * @param kept how long claims are kept
     * @param batchSize how many are to be removed at once
     * @return {@link UnfitTableException} if there is no such table
     */
    public Mono<Plan> plan(Connection connection, Duration kept, int batchSize) {
        long pagesOfPiece = Math.max(1, batchSize / CLAIMS_OF_A_PAGE);
        return Queries.rows(
                        connection,
                        IS_THERE,
                        row -> Objects.requireNonNull(row.get(0, Boolean.class)),
                        table.quotedName())
                .single()
                .filter(isThere -> isThere)
                .switchIfEmpty(Mono.error(() -> new UnfitTableException(
                        "Table %s does not exist in this database, or is not in the search path.".formatted(table))))
                .thenMany(Flux.defer(() -> Queries.rows(
                        connection,
                        LOOK,
                        Found::read,
                        table.quotedName(),
                        kept.toMillis() / 1000.0,
                        processedAt.name(),
                        consumer == null ? "" : consumer)))
                .doOnNext(this::requireFit)
                .collectList()
                .map(leaves -> {
                    List<Piece> pieces = new ArrayList<>();
                    for (Found leaf : leaves) {
                        for (long page = 0; page < leaf.pages; page += pagesOfPiece) {
                            pieces.add(new Piece(leaf.name, page, page + pagesOfPiece));
                        }
                    }
                    return leaves.isEmpty()
                            ? new Plan("", 0, true, List.of())
                            : new Plan(
                                    leaves.get(0).oldestKept,
                                    leaves.get(0).lock,
                                    leaves.get(0).version >= SCANS_RANGES,
                                    pieces);
                });
    }

    private void requireFit(Found leaf) {
        if (!leaf.allowed) {
            throw new UnfitTableException(
                    ("Role %s may not remove claims. Allow it: GRANT SELECT, UPDATE, DELETE ON %s TO %s; (UPDATE because a row is locked"
                                    + " before it is deleted)")
                            .formatted(leaf.role, leaf.name, new Identifier(leaf.role).quoted()));
        }
        if (!"timestamp with time zone".equals(leaf.timeType)) {
            throw new UnfitTableException(
                    ("Column %s of table %s has type %s, which depends on the time zone of who writes and reads it: claims could be removed"
                                    + " hours too early. Change it: ALTER TABLE %s ALTER COLUMN %s TYPE timestamptz USING ...;")
                            .formatted(processedAt, table, leaf.timeType, table.quotedName(), processedAt.quoted()));
        }
    }

    /** Sets how long each statement of the transaction may wait for a lock. */
    public Mono<Void> bound(Connection inTransaction, Duration lockTimeout) {
        return Queries.rows(inTransaction, BOUND, row -> row, Long.toString(lockTimeout.toMillis()))
                .then();
    }

    /**
     * Removes old claims of a piece, up to a number. Those that somebody has locked are left for another time.
     *
     * @return how many; if that is less than {@code most}, the piece is done
     */
    public Mono<Long> remove(Connection inTransaction, Plan plan, Piece piece, int most) {
        Identifier consumerColumn = table.consumerColumn();
        boolean ofOne = consumer != null && consumerColumn != null;
        String places = plan.scansRanges()
                ? IN_RANGE
                : IN_PLACES.replace("$relation", piece.relation().replace("'", "''"));
        String sql = "DELETE FROM ONLY " + piece.relation() + " WHERE ctid = ANY (ARRAY(SELECT ctid FROM ONLY "
                + piece.relation() + " WHERE " + places + " AND " + processedAt.quoted() + " < $3::text::timestamptz"
                + (ofOne ? " AND " + Objects.requireNonNull(consumerColumn).quoted() + " = $5" : "")
                + " LIMIT $4::bigint FOR UPDATE SKIP LOCKED))";
        List<Object> values = new ArrayList<>(List.of(piece.from(), piece.to(), plan.oldestKept(), (long) most));
        if (ofOne) {
            values.add(Objects.requireNonNull(consumer));
        }
        return Queries.updated(inTransaction, sql, values.toArray());
    }

    private record Found(
            String name,
            long pages,
            boolean allowed,
            String role,
            @Nullable String timeType,
            String oldestKept,
            int version,
            long lock) {

        static Found read(Row row) {
            return new Found(
                    value(row, "name", String.class),
                    value(row, "pages", Long.class),
                    value(row, "allowed", Boolean.class),
                    value(row, "role", String.class),
                    row.get("time_type", String.class),
                    value(row, "oldest_kept", String.class),
                    value(row, "version", Integer.class),
                    value(row, "lock", Long.class));
        }

        private static <V> V value(Row row, String column, Class<V> type) {
            return Objects.requireNonNull(row.get(column, type), column);
        }
    }

    @Override
    public String toString() {
        return consumer == null ? table.toString() : table + " of consumer '" + consumer + "'";
    }
}
