package io.onceflux.postgres;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Result;
import io.r2dbc.spi.Row;
import io.r2dbc.spi.Statement;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** The statements that make, fill and empty a dead-letter table. */
final class DeadLetterTableSql {

    private static final int MOST_ROWS = 100;

    /** What is there once. Messages without a usable key have null, which is never equal to another. */
    private static final String UNIQUE = "\"consumer\", \"message_key\", sha256(\"body\")";

    private final String name;
    private final String index;

    /** @param index of an index that is in the schema of the table, as any index is */
    DeadLetterTableSql(String quotedName, Identifier index) {
        this.name = quotedName;
        this.index = index.quoted();
    }

    String create() {
        return """
                CREATE TABLE IF NOT EXISTS %s (
                    "number" bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                    "times" integer NOT NULL DEFAULT 1,
                    "consumer" text COLLATE "C" NOT NULL,
                    "message_key" text COLLATE "C",
                    "message_id" text COLLATE "C",
                    "origin" text NOT NULL,
                    "kind" text NOT NULL,
                    "reason" text NOT NULL,
                    "sqlstate" text,
                    "attempts" integer NOT NULL,
                    "failed_at" timestamptz NOT NULL,
                    "header_names" text[] NOT NULL,
                    "header_values" text[] NOT NULL,
                    "body" bytea NOT NULL
                );
                """.formatted(name) + createIndex() + "\n";
    }

    String createIndex() {
        return "CREATE UNIQUE INDEX IF NOT EXISTS %s ON %s (%s);".formatted(index, name, UNIQUE);
    }

    /** The quoted name of what a crash of PostgreSQL empties: the table, or a partition of it; empty if nothing. */
    Mono<String> unlogged(Connection connection) {
        return Queries.rows(connection, """
                        SELECT oid::regclass::text AS name FROM pg_class
                        WHERE relpersistence = 'u' AND (oid = to_regclass($1)
                            OR oid IN (SELECT relid FROM pg_partition_tree(to_regclass($1))))
                        ORDER BY name LIMIT 1""", row -> get(row, "name", String.class), name)
                .next();
    }

    /** The number of the row; empty if a rule or trigger took the row away. */
    Mono<Long> store(Connection inTransaction, DeadLetterRow row) {
        String sql = """
                INSERT INTO %s AS kept
                    (consumer, message_key, message_id, origin, kind, reason, sqlstate, attempts, failed_at,
                     header_names, header_values, body)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
                ON CONFLICT (%s) DO UPDATE SET
                    times = kept.times + 1,
                    message_id = EXCLUDED.message_id,
                    origin = EXCLUDED.origin,
                    kind = EXCLUDED.kind,
                    reason = EXCLUDED.reason,
                    sqlstate = EXCLUDED.sqlstate,
                    attempts = EXCLUDED.attempts,
                    failed_at = EXCLUDED.failed_at,
                    header_names = EXCLUDED.header_names,
                    header_values = EXCLUDED.header_values
                RETURNING number""".formatted(name, UNIQUE);
        return Flux.defer(() -> {
                    Statement statement = inTransaction.createStatement(sql).bind(0, row.consumer());
                    bind(statement, 1, row.messageKey());
                    bind(statement, 2, row.messageId());
                    bind(statement, 6, row.sqlState());
                    return Flux.from(statement
                                    .bind(3, row.origin())
                                    .bind(4, row.kind())
                                    .bind(5, row.reason())
                                    .bind(7, row.attempts())
                                    .bind(8, Objects.requireNonNull(row.failedAt()))
                                    .bind(9, row.headers().keySet().toArray(String[]::new))
                                    .bind(10, row.headers().values().toArray(String[]::new))
                                    .bind(11, row.body())
                                    .execute())
                            .concatMap(result -> result.map((stored, metadata) -> get(stored, "number", Long.class)));
                })
                .collectList()
                .flatMapMany(Flux::fromIterable)
                .next();
    }

    Mono<Boolean> renew(Connection connection, DeadLetterRow row) {
        String sql = """
                UPDATE %s SET times = times + 1, kind = $3, reason = $4, sqlstate = $5, attempts = $6, failed_at = $7
                WHERE number = $1 AND times = $2""".formatted(name);
        return Flux.defer(() -> {
                    Statement statement = connection
                            .createStatement(sql)
                            .bind(0, row.number())
                            .bind(1, row.times())
                            .bind(2, row.kind())
                            .bind(3, row.reason())
                            .bind(5, row.attempts())
                            .bind(6, Objects.requireNonNull(row.failedAt()));
                    bind(statement, 4, row.sqlState());
                    return Flux.from(statement.execute()).concatMap(Result::getRowsUpdated);
                })
                .reduce(0L, Long::sum)
                .map(rows -> rows > 0);
    }

    /** The sizes are known to the server without a look at the bodies. */
    Mono<List<DeadLetterRow>> page(Connection connection, String consumer, long after, long upTo, long bytes) {
        String sql = """
                WITH sized AS (
                    SELECT number, sum(size) OVER (ORDER BY number) - size AS before FROM (
                        SELECT number, octet_length(body) + octet_length(header_values::text) AS size FROM %1$s
                        WHERE consumer = $1 AND number > $2 AND number <= $3 ORDER BY number LIMIT %2$d) AS next)
                SELECT number, times, consumer, message_key, message_id, origin, kind, reason, sqlstate, attempts, failed_at,
                       header_names, header_values, body
                FROM %1$s JOIN sized USING (number)
                WHERE before = 0 OR before + octet_length(body) <= $4 ORDER BY number""".formatted(name, MOST_ROWS);
        return Queries.rows(connection, sql, DeadLetterTableSql::read, consumer, after, upTo, bytes)
                .collectList();
    }

    Mono<Long> last(Connection connection, String consumer) {
        return Queries.rows(
                        connection,
                        "SELECT coalesce(max(number), 0) FROM %s WHERE consumer = $1".formatted(name),
                        row -> Objects.requireNonNull(row.get(0, Long.class)),
                        consumer)
                .single();
    }

    Mono<Boolean> remove(Connection connection, DeadLetterRow row) {
        return Queries.updated(
                        connection,
                        "DELETE FROM %s WHERE number = $1 AND times = $2".formatted(name),
                        row.number(),
                        row.times())
                .map(rows -> rows > 0);
    }

    private static void bind(Statement statement, int index, @Nullable String value) {
        if (value == null) {
            statement.bindNull(index, String.class);
        } else {
            statement.bind(index, value);
        }
    }

    private static DeadLetterRow read(Row row) {
        return new DeadLetterRow(
                get(row, "number", Long.class),
                get(row, "times", Integer.class),
                get(row, "consumer", String.class),
                row.get("message_key", String.class),
                row.get("message_id", String.class),
                get(row, "origin", String.class),
                get(row, "kind", String.class),
                get(row, "reason", String.class),
                row.get("sqlstate", String.class),
                get(row, "attempts", Integer.class),
                ifReadable(() -> row.get("failed_at", Instant.class)),
                headers(row),
                get(row, "body", byte[].class));
    }

    /** Whoever wrote the row, its body can be given back. */
    private static Map<String, String> headers(Row row) {
        String[] names = ifReadable(() -> row.get("header_names", String[].class));
        String[] values = ifReadable(() -> row.get("header_values", String[].class));
        Map<String, String> headers = new LinkedHashMap<>();
        if (names != null && values != null) {
            for (int i = 0; i < Math.min(names.length, values.length); i++) {
                headers.put(String.valueOf(names[i]), String.valueOf(values[i]));
            }
        }
        return headers;
    }

    /** Null for what the driver has no value for, such as an infinite time or an array of arrays. */
    private static <V> @Nullable V ifReadable(Supplier<@Nullable V> column) {
        try {
            return column.get();
        } catch (RuntimeException e) {
            return null;
        }
    }

    private static <V> V get(Row row, String column, Class<V> type) {
        return Objects.requireNonNull(row.get(column, type), column);
    }
}
