package io.onceflux.postgres;

import io.onceflux.postgres.OutboxTable.Lease;
import io.onceflux.postgres.OutboxTable.Taken;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Row;
import java.time.Duration;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/**
 * The statement that takes rows of an outbox.
 *
 * <p>It looks at the oldest rows, some times as many as are asked for. Where they do not yield enough, because most of them wait for one before
 * them, it walks the index from key to key, however many rows each has, and goes on where it was the last time, so that each key has its turn.
 * What is taken of a key has no row before it that is not.
 *
 * <p>What the planner knows of an outbox is often of a time when it was empty, and then any index looks as good as the next one. So each part asks
 * for the order of the one that is meant, in a transaction that sorts nothing which an index has in order; and the last one for nothing that a partial
 * index could answer.
 */
final class OutboxTake {

    private static final String PENDING = "kind = $1 AND sent_at IS NULL AND parked_at IS NULL";
    private static final String PARKED = "kind = $1 AND sent_at IS NULL AND parked_at IS NOT NULL";

    /** How many rows, and then keys, are looked at for one that is asked for. */
    private static final int LOOKED_AT = 10;

    private OutboxTake() {}

    /** A key is busy as long as any row of it is taken, or waits to be tried again: also a later one, if an earlier one was committed late. */
    static Mono<Taken> from(
            String table,
            Connection inTransaction,
            String kind,
            int most,
            Duration lease,
            boolean parkedBlock,
            String after) {
        String sql = """
                WITH RECURSIVE busy AS MATERIALIZED (
                    SELECT DISTINCT message_key FROM (
                        SELECT message_key FROM %1$s WHERE %3$s AND due_at > statement_timestamp() ORDER BY due_at OFFSET 0) AS later),
                blocked AS MATERIALIZED (
                    SELECT message_key, min(number) AS number FROM %1$s WHERE $4::boolean AND %4$s GROUP BY message_key),
                oldest AS MATERIALIZED (
                    SELECT number, message_key FROM %1$s WHERE %3$s ORDER BY number LIMIT $2::int * %5$d),
                near AS MATERIALIZED (
                    SELECT number FROM oldest
                    WHERE message_key NOT IN (SELECT message_key FROM busy) AND NOT EXISTS (
                        SELECT FROM blocked WHERE blocked.message_key = oldest.message_key AND blocked.number < oldest.number)
                    ORDER BY number LIMIT $2::int),
                walk (message_key, is_free, free, steps) AS (
                    SELECT $5::text COLLATE "C", false, 0, 0
                    WHERE (SELECT count(*) FROM near) < $2::int AND (SELECT count(*) FROM oldest) = $2::int * %5$d
                    UNION ALL
                    SELECT step.message_key, step.is_free, walk.free + step.is_free::int, walk.steps + 1
                    FROM walk CROSS JOIN LATERAL (
                        SELECT message_key, message_key NOT IN (SELECT message_key FROM busy) AND NOT EXISTS (
                            SELECT FROM %1$s AS parked WHERE $4::boolean AND %4$s
                                AND parked.message_key = head.message_key AND parked.number < head.number) AS is_free
                        FROM (SELECT message_key, number FROM %1$s WHERE %3$s AND message_key > walk.message_key
                              ORDER BY message_key, number LIMIT 1) AS head) AS step
                    WHERE walk.free < $2::int AND walk.steps < $2::int * %5$d),
                far AS (
                    SELECT behind.number
                    FROM (SELECT message_key, count(*) OVER () AS keys FROM walk WHERE is_free) AS reached
                    CROSS JOIN LATERAL (
                        SELECT number FROM %1$s AS pending
                        WHERE %3$s AND message_key BETWEEN reached.message_key AND reached.message_key AND NOT EXISTS (
                            SELECT FROM blocked
                            WHERE blocked.message_key = pending.message_key AND blocked.number < pending.number)
                        ORDER BY message_key, number LIMIT ($2::int + reached.keys - 1) / reached.keys) AS behind),
                chosen AS MATERIALIZED (
                    SELECT number FROM near UNION SELECT number FROM far ORDER BY number LIMIT $2::int),
                due AS (
                    SELECT number FROM %1$s AS pending
                    WHERE number = ANY (ARRAY(SELECT number FROM chosen))
                        AND COALESCE(sent_at, parked_at) IS NULL AND due_at <= statement_timestamp()
                    ORDER BY number FOR UPDATE OF pending SKIP LOCKED),
                taken AS (
                    UPDATE %1$s AS kept SET due_at = statement_timestamp() + make_interval(secs => $3::float8), attempts = attempts + 1
                    FROM due WHERE kept.number = due.number
                    RETURNING kept.number, attempts, %2$s AS until)
                SELECT taken.number, attempts, until, COALESCE((
                    SELECT message_key FROM walk WHERE free >= $2::int OR steps >= $2::int * %5$d ORDER BY steps DESC LIMIT 1), '') AS reached
                FROM (SELECT) AS always LEFT JOIN taken ON true""".formatted(table, OutboxSql.MICROS, PENDING, PARKED, LOOKED_AT);
        return Queries.rows(
                        inTransaction,
                        sql,
                        row -> new Look(leaseOf(row), OutboxSql.get(row, "reached", String.class)),
                        kind,
                        most,
                        lease.toMillis() / 1000.0,
                        parkedBlock,
                        after)
                .collectList()
                .map(looks -> new Taken(
                        looks.stream().map(Look::lease).filter(Objects::nonNull).toList(),
                        looks.get(0).reached()));
    }

    private record Look(@Nullable Lease lease, String reached) {}

    private static @Nullable Lease leaseOf(Row row) {
        Long number = row.get("number", Long.class);
        return number == null
                ? null
                : new Lease(
                        number, OutboxSql.get(row, "attempts", Integer.class), OutboxSql.get(row, "until", Long.class));
    }
}
