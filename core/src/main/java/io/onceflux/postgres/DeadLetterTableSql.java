package io.onceflux.postgres;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Row;
import io.r2dbc.spi.Statement;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** The statements that make, fill and empty a dead-letter table. */
final class DeadLetterTableSql {

    private final String name;

    DeadLetterTableSql(String quotedName) {
        this.name = quotedName;
    }

    /** A key is there once; messages without a usable key have null, which is never equal to another. */
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
                    "body" bytea NOT NULL,
                    UNIQUE ("consumer", "message_key")
                );
                """.formatted(name);
    }

    Mono<Void> store(Connection inTransaction, DeadLetterRow row) {
        String sql = """
                INSERT INTO %s AS kept
                    (consumer, message_key, message_id, origin, kind, reason, sqlstate, attempts, failed_at,
                     header_names, header_values, body)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
                ON CONFLICT (consumer, message_key) DO UPDATE SET
                    times = kept.times + 1,
                    message_id = EXCLUDED.message_id,
                    origin = EXCLUDED.origin,
                    kind = EXCLUDED.kind,
                    reason = EXCLUDED.reason,
                    sqlstate = EXCLUDED.sqlstate,
                    attempts = EXCLUDED.attempts,
                    failed_at = EXCLUDED.failed_at,
                    header_names = EXCLUDED.header_names,
                    header_values = EXCLUDED.header_values,
                    body = EXCLUDED.body""".formatted(name);
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
                                    .bind(8, row.failedAt())
                                    .bind(9, row.headers().keySet().toArray(String[]::new))
                                    .bind(10, row.headers().values().toArray(String[]::new))
                                    .bind(11, row.body())
                                    .execute())
                            .concatMap(result -> result.getRowsUpdated());
                })
                .then();
    }

    Mono<List<DeadLetterRow>> page(Connection connection, String consumer, long after, int most) {
        String sql = """
                SELECT number, times, consumer, message_key, message_id, origin, kind, reason, sqlstate, attempts, failed_at,
                       header_names, header_values, body
                FROM %s WHERE consumer = $1 AND number > $2 ORDER BY number LIMIT $3""".formatted(name);
        return Queries.rows(connection, sql, DeadLetterTableSql::read, consumer, after, most)
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

    Mono<Void> remove(Connection connection, DeadLetterRow row) {
        return Queries.execute(
                connection,
                "DELETE FROM %s WHERE number = $1 AND times = $2".formatted(name),
                row.number(),
                row.times());
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
                get(row, "failed_at", Instant.class),
                headers(get(row, "header_names", String[].class), get(row, "header_values", String[].class)),
                get(row, "body", byte[].class));
    }

    private static Map<String, String> headers(String[] names, String[] values) {
        Map<String, String> headers = new LinkedHashMap<>();
        for (int i = 0; i < names.length; i++) {
            headers.put(names[i], values[i]);
        }
        return headers;
    }

    private static <V> V get(Row row, String column, Class<V> type) {
        return Objects.requireNonNull(row.get(column, type), column);
    }
}
