package io.onceflux.postgres;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Row;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * The partitions of a claim table: which there are, which are missing, and which are old. None is made or dropped in a way that lets a claim
 * wait.
 *
 * <p>The role must own the table, and have CREATE in its schema.
 */
public final class ClaimPartitions {

    /** DETACH PARTITION ... CONCURRENTLY is there from this version on. Source: https://www.postgresql.org/docs/release/14.0/ */
    private static final int DETACHES_CONCURRENTLY = 140_000;

    /** A table that was a partition is dropped only if it says so: what an operator has detached is the operator's. */
    private static final String TO_BE_DROPPED =
            "OnceFlux: these claims of table %d are old, and are about to be dropped";

    private static final String LOOK = """
            SELECT c.oid::bigint AS oid, current_setting('server_version_num')::int AS version, extract(epoch FROM clock_timestamp())::bigint AS now,
                   quote_ident(n.nspname) AS schema, pg_has_role(c.relowner, 'USAGE') AS owned, current_user::text AS role,
                   hashtextextended('onceflux retention of ' || c.oid::text || ' ', 0) AS lock,
                   (SELECT count(*) FROM pg_partitioned_table p JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]
                    WHERE p.partrelid = c.oid AND p.partstrat = 'r' AND p.partnatts = 1 AND a.attname = $2) = 1 AS by_bucket,
                   EXISTS (SELECT FROM pg_partitioned_table p WHERE p.partrelid = c.oid AND p.partdefid <> 0) AS has_default
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)""";

    /** Bounds are to be had as text only, in the time zone and the style of the connection; so it is this that reads them. */
    private static final String PARTITIONS = """
            SELECT format('%%I.%%I', n.nspname, c.relname) AS name,
                   extract(epoch FROM CAST(bounds[1] AS %1$s))::bigint AS first, extract(epoch FROM CAST(bounds[2] AS %1$s))::bigint AS last,
                   COALESCE((to_jsonb(i) ->> 'inhdetachpending')::boolean, false) AS detaching, c.reltuples::bigint AS rows
            FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_namespace n ON n.oid = c.relnamespace
            CROSS JOIN LATERAL regexp_match(pg_get_expr(c.relpartbound, c.oid),
                '^FOR VALUES FROM \\(''([^'']*)''\\) TO \\(''([^'']*)''\\)$') AS b (bounds)
            WHERE i.inhparent = to_regclass($1) ORDER BY first, name""";

    private static final String LEFT_BEHIND = """
            SELECT format('%I.%I', n.nspname, c.relname) AS name
            FROM pg_class p JOIN pg_class c ON c.relnamespace = p.relnamespace JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE p.oid = to_regclass($1) AND c.relkind = 'r' AND NOT c.relispartition
                AND obj_description(c.oid, 'pg_class') = $2""";

    private final ClaimTable table;
    private final Buckets buckets;

    /** Those of a table that has buckets. */
    public ClaimPartitions(ClaimTable table) {
        this.table = table;
        this.buckets = Objects.requireNonNull(table.buckets(), "the table has no buckets");
    }

    /**
     * A partition.
     *
     * @param name quoted, with its schema
     * @param from the first time that belongs to it; null where there is no bound that can be read
     * @param to the first time behind it
     * @param detaching whether its removal was begun: no claim gets into it any more
     * @param rows about, as of the last ANALYZE or VACUUM; negative if there was none
     */
    public record Partition(
            String name, @Nullable Instant from, @Nullable Instant to, boolean detaching, long rows) {

        boolean isBounded() {
            return from != null && to != null;
        }

        boolean endsBefore(Instant time) {
            return to != null && !to.isAfter(time);
        }
    }

    /**
     * A table with its partitions.
     *
     * @param now by the server's clock
     * @param schema quoted
     * @param owned whether the role may do what the owner may
     * @param lock what all who make and drop these partitions take
     * @param byBucket whether it is partitioned by ranges of the bucket
     * @param partitions in the order of their times
     */
    public record Found(
            long oid,
            int version,
            Instant now,
            String schema,
            boolean owned,
            String role,
            long lock,
            boolean byBucket,
            boolean hasDefault,
            List<Partition> partitions) {

        /** The first time that can be claimed; empty without a partition. */
        @Nullable
        Instant from() {
            return usable().map(Partition::from)
                    .filter(Objects::nonNull)
                    .findFirst()
                    .orElse(null);
        }

        /** The first time behind all partitions. */
        @Nullable
        Instant to() {
            return usable().map(Partition::to)
                    .filter(Objects::nonNull)
                    .max(Instant::compareTo)
                    .orElse(null);
        }

        /** Whether there is no partition for a time, nor for later ones. */
        boolean endsBefore(Instant time) {
            Instant to = to();
            return to == null || !to.isAfter(time);
        }

        /** Those that can be claimed in, in the order of their times. */
        Stream<Partition> usable() {
            return partitions.stream().filter(partition -> !partition.detaching() && partition.isBounded());
        }

        public boolean detachesConcurrently() {
            return version >= DETACHES_CONCURRENTLY;
        }
    }

    /** Looks at the table; {@link UnfitTableException} if there is none. */
    public Mono<Found> look(Connection connection) {
        return Mono.defer(() -> Queries.rows(
                                connection,
                                PARTITIONS.formatted(buckets.width().sqlType()),
                                ClaimPartitions::partition,
                                table.quotedName())
                        .collectList())
                .flatMap(partitions -> Queries.rows(
                                connection,
                                LOOK,
                                row -> found(row, partitions),
                                table.quotedName(),
                                buckets.column().name())
                        .next())
                .switchIfEmpty(Mono.error(() -> UnfitTableException.missing(table, table.createSql())));
    }

    private static Partition partition(Row row) {
        return new Partition(
                value(row, "name", String.class),
                time(row.get("first", Long.class)),
                time(row.get("last", Long.class)),
                value(row, "detaching", Boolean.class),
                value(row, "rows", Long.class));
    }

    private static @Nullable Instant time(@Nullable Long seconds) {
        return seconds == null ? null : Instant.ofEpochSecond(seconds);
    }

    private static Found found(Row row, List<Partition> partitions) {
        return new Found(
                value(row, "oid", Long.class),
                value(row, "version", Integer.class),
                Instant.ofEpochSecond(value(row, "now", Long.class)),
                value(row, "schema", String.class),
                value(row, "owned", Boolean.class),
                value(row, "role", String.class),
                value(row, "lock", Long.class),
                value(row, "by_bucket", Boolean.class),
                value(row, "has_default", Boolean.class),
                partitions);
    }

    /** Throws {@link UnfitTableException} if claims cannot be kept in these partitions, however many there are. */
    void requireFit(Found found) {
        if (!found.byBucket) {
            throw new UnfitTableException(
                    ("Table %s is not partitioned by RANGE (%s), so there is nothing to be dropped whole. A table cannot be partitioned"
                                    + " later: create another, %s")
                            .formatted(
                                    table,
                                    buckets.column(),
                                    table.createSql().strip().replaceAll("\\s+", " ")));
        }
        if (found.hasDefault) {
            throw new UnfitTableException(
                    ("Table %s has a default partition. Claims of any time would go there: those that are too old would be applied again,"
                                    + " and no partition could be made or dropped without a look through it. Drop it.")
                            .formatted(table));
        }
        found.partitions.stream()
                .filter(partition -> !partition.isBounded())
                .findFirst()
                .ifPresent(partition -> {
                    throw new UnfitTableException("Partition %s of table %s has no bounds in time on both sides."
                            .formatted(partition.name, table));
                });
    }

    /** Throws {@link UnfitTableException} if partitions cannot be made and dropped. */
    public void requireManageable(Found found) {
        requireFit(found);
        if (!found.owned) {
            throw new UnfitTableException(
                    ("Role %s may not make and drop partitions of table %s: PostgreSQL lets only its owner. Run the retention as the"
                                    + " owner, or: ALTER TABLE %s OWNER TO %s;")
                            .formatted(found.role, table, table.quotedName(), new Identifier(found.role).quoted()));
        }
    }

    /**
     * A partition that is to be made.
     *
     * @param from the beginning of its bucket
     */
    public record Missing(Instant from, Instant to) {}

    /**
     * The partitions that are to be made: from the last one on, up to a bucket more than is {@linkplain Buckets#ahead ahead}; without any, from
     * the oldest time that is kept. Never one before others: it may have been dropped.
     */
    public List<Missing> missing(Found found, Duration kept) {
        Duration width = buckets.width().length();
        Instant last = found.to();
        Instant next = last == null ? buckets.width().floor(found.now.minus(kept)) : firstBucketSince(last);
        Instant end = found.now.plus(buckets.ahead()).plus(width);
        List<Missing> missing = new ArrayList<>();
        for (; next.isBefore(end); next = next.plus(width)) {
            missing.add(new Missing(next, next.plus(width)));
        }
        return missing;
    }

    /**
     * Times between partitions for which there is none. It was there once, for none is made before others.
     *
     * @param from the beginning of the first bucket that has no place
     * @param to where the next partition begins
     */
    public record Gap(Instant from, Instant to) {

        boolean has(Instant bucket) {
            return !bucket.isBefore(from) && bucket.isBefore(to);
        }
    }

    /** The gaps between those that can be claimed in, the oldest first. */
    public List<Gap> gaps(Found found) {
        List<Gap> gaps = new ArrayList<>();
        Instant last = null;
        for (Partition partition : found.usable().toList()) {
            Instant from = Objects.requireNonNull(partition.from());
            Instant next = last == null ? from : firstBucketSince(last);
            if (next.isBefore(from)) {
                gaps.add(new Gap(next, from));
            }
            last = partition.to();
        }
        return gaps;
    }

    /** The first bucket that begins then, or later: somebody may have made a partition that ends within a bucket. */
    private Instant firstBucketSince(Instant time) {
        Instant bucket = buckets.width().floor(time);
        return bucket.isBefore(time) ? bucket.plus(buckets.width().length()) : bucket;
    }

    /** Says of a gap what it is, and what a person can do: whether its claims matter is not to be known from here. */
    String wordsOf(Found found, Gap gap) {
        return ("from %s to %s there is none, although there are later ones: it was dropped or detached, with its claims. If it is still there,"
                        + " attach it again. If not, and if none of its messages can come again or they are known not to be applied, make it:"
                        + " CREATE TABLE %s PARTITION OF %s FOR VALUES FROM ('%s') TO ('%s');")
                .formatted(
                        gap.from,
                        gap.to,
                        nameOf(found, gap.from),
                        table.quotedName(),
                        buckets.width().bound(gap.from),
                        buckets.width().bound(gap.to));
    }

    /** A sentence for each gap: of a consumer that starts, or a retention that cannot fill it. */
    List<String> warningsOf(Found found) {
        return gaps(found).stream()
                .map(gap -> "table %s has a gap between its partitions, whose messages are held: %s"
                        .formatted(table, wordsOf(found, gap)))
                .toList();
    }

    /** Throws {@link MissingPartitionException}, which names the first gap, if there is one. */
    public void requireNoGap(Found found) {
        List<String> gaps = warningsOf(found);
        if (!gaps.isEmpty()) {
            throw new MissingPartitionException(
                    gaps.get(0) + (gaps.size() == 1 ? "" : " There are %d such gaps.".formatted(gaps.size())));
        }
    }

    /** The partitions whose times are all longer ago than that, the oldest first; also those whose removal was begun. */
    public List<Partition> old(Found found, Duration kept) {
        Instant oldest = found.now.minus(kept);
        return found.partitions.stream()
                .filter(partition -> partition.detaching || partition.endsBefore(oldest))
                .toList();
    }

    /**
     * Makes a partition: beside the table, and then attached, for which claims need not wait.
     *
     * @param inTransaction so that no half of it stays
     */
    public Mono<Void> make(Connection inTransaction, Found found, Missing missing) {
        String name = nameOf(found, missing.from);
        return Queries.execute(
                        inTransaction, "CREATE TABLE %s (LIKE %s INCLUDING ALL)".formatted(name, table.quotedName()))
                .then(Queries.execute(
                        inTransaction,
                        "ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM ('%s') TO ('%s')"
                                .formatted(
                                        table.quotedName(),
                                        name,
                                        buckets.width().literal(missing.from),
                                        buckets.width().literal(missing.to))));
    }

    private String nameOf(Found found, Instant from) {
        return found.schema + "."
                + table.table().with("_p" + buckets.width().name(from)).quoted();
    }

    /** Says of a partition that it is to be dropped, so that it is even if nobody comes to do it now. */
    public Mono<Void> markOld(Connection connection, Found found, Partition partition) {
        return Queries.execute(
                connection,
                "COMMENT ON TABLE %s IS '%s'".formatted(partition.name, TO_BE_DROPPED.formatted(found.oid)));
    }

    /**
     * Takes a partition out of the table; what is under way is waited for, while claims go on.
     *
     * @param withoutTransaction DETACH ... CONCURRENTLY takes two of its own
     */
    public Mono<Void> detachConcurrently(Connection withoutTransaction, Partition partition) {
        return Queries.execute(
                withoutTransaction,
                "ALTER TABLE %s DETACH PARTITION %s %s"
                        .formatted(
                                table.quotedName(), partition.name, partition.detaching ? "FINALIZE" : "CONCURRENTLY"));
    }

    /** The same before PostgreSQL 14: it locks the whole table, for a moment, and claims wait behind it for as long as it waits itself. */
    public Mono<Void> detach(Connection inTransaction, Partition partition) {
        return Queries.execute(
                inTransaction, "ALTER TABLE %s DETACH PARTITION %s".formatted(table.quotedName(), partition.name));
    }

    /** The names of former partitions that are still to be dropped. */
    public Flux<String> leftBehind(Connection connection, Found found) {
        return Queries.rows(
                connection,
                LEFT_BEHIND,
                row -> value(row, "name", String.class),
                table.quotedName(),
                TO_BE_DROPPED.formatted(found.oid));
    }

    /** Drops a former partition, which nobody uses any more. */
    public Mono<Void> drop(Connection inTransaction, String name) {
        return Queries.execute(inTransaction, "DROP TABLE " + name);
    }

    private static <V> V value(Row row, String column, Class<V> type) {
        return Objects.requireNonNull(row.get(column, type), column);
    }

    @Override
    public String toString() {
        return table + " with " + buckets;
    }
}
