package io.onceflux.postgres;

import io.onceflux.postgres.OutboxTable.Lease;
import io.onceflux.postgres.OutboxTable.NewRow;
import io.onceflux.postgres.OutboxTable.ParkedRow;
import io.onceflux.postgres.OutboxTable.Settled;
import io.onceflux.postgres.OutboxTable.State;
import io.r2dbc.postgresql.api.PostgresqlConnection;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Row;
import io.r2dbc.spi.Wrapped;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * The statements that make, fill, work off and empty an outbox table.
 *
 * <p>A row that is not sent has a time from which on it is due. To take it moves that time ahead; a row that somebody has taken and does not
 * settle is due again by itself.
 */
final class OutboxSql {

    private static final String CHANNEL = "onceflux_outbox";

    private static final String FIND = """
            SELECT n.nspname::text AS schema, c.relpersistence::text AS persistence,
                   ARRAY(SELECT attname::text FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped) AS columns,
                   c.oid::bigint AS oid,
                   (SELECT count(*) FROM pg_index i WHERE i.indrelid = c.oid AND i.indisvalid AND i.indpred IS NOT NULL
                       AND ARRAY['kind', 'message_key', 'number']::name[] = ARRAY(
                           SELECT a.attname FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, nth)
                           JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum ORDER BY nth)) >= 2 AS by_key
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)""";

    private static final List<String> COLUMNS = List.of(
            "number",
            "idempotency_key",
            "kind",
            "message_key",
            "payload",
            "header_names",
            "header_values",
            "appended_at",
            "due_at",
            "attempts",
            "sent_at",
            "parked_at",
            "reason");

    /** The end of a lease as a number, which every settlement changes. */
    static final String MICROS = "(extract(epoch FROM kept.due_at) * 1000000)::bigint";

    /** Of a kind in a table. */
    private static final String LOCK =
            "hashtextextended('onceflux outbox ' || $1::regclass::oid::text || ' ' || $2, 0)";

    /** Whoever is frozen while it has the lock loses its session, and nobody waits for it for long. */
    private static final String LIMITS =
            "set_config('lock_timeout', '5000', true), set_config('idle_in_transaction_session_timeout', '10000', true)";

    /** For {@link OutboxTake}, which says by an order which index is meant. What is avoided looks dear enough to be compiled. */
    private static final String NO_SORTS = "set_config('enable_sort', 'off', true), set_config('jit', 'off', true)";

    private final String name;
    private final Identifier table;

    OutboxSql(@Nullable Identifier schema, Identifier table) {
        this.name = schema == null ? table.quoted() : schema.quoted() + "." + table.quoted();
        this.table = table;
    }

    String quotedName() {
        return name;
    }

    /**
     * @param missing the columns that it has not
     * @param byKey whether it has both indexes of the keys
     */
    record Found(String schema, String persistence, List<String> missing, Long oid, boolean byKey) {}

    String create() {
        return """
                CREATE TABLE IF NOT EXISTS %1$s (
                    "number" bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                    "idempotency_key" text COLLATE "C" NOT NULL UNIQUE,
                    "kind" text COLLATE "C" NOT NULL,
                    "message_key" text COLLATE "C" NOT NULL,
                    "payload" bytea NOT NULL,
                    "header_names" text[] NOT NULL,
                    "header_values" text[] NOT NULL,
                    "appended_at" timestamptz NOT NULL DEFAULT now(),
                    "due_at" timestamptz NOT NULL DEFAULT now(),
                    "attempts" integer NOT NULL DEFAULT 0,
                    "sent_at" timestamptz,
                    "parked_at" timestamptz,
                    "reason" text
                ) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
                CREATE INDEX IF NOT EXISTS %2$s ON %1$s ("kind", "number") WHERE "sent_at" IS NULL AND "parked_at" IS NULL;
                CREATE INDEX IF NOT EXISTS %3$s ON %1$s ("kind", "due_at") WHERE "sent_at" IS NULL AND "parked_at" IS NULL;
                CREATE INDEX IF NOT EXISTS %4$s ON %1$s ("kind", "message_key", "number") WHERE "sent_at" IS NULL AND "parked_at" IS NULL;
                CREATE INDEX IF NOT EXISTS %5$s ON %1$s ("kind", "message_key", "number") WHERE "sent_at" IS NULL AND "parked_at" IS NOT NULL;
                CREATE INDEX IF NOT EXISTS %6$s ON %1$s ("sent_at") WHERE "sent_at" IS NOT NULL;
                """.formatted(
                        name,
                        table.with("_pending_idx").quoted(),
                        table.with("_due_idx").quoted(),
                        table.with("_keys_idx").quoted(),
                        table.with("_parked_keys_idx").quoted(),
                        table.with("_sent_idx").quoted());
    }

    Flux<Found> found(Connection connection) {
        return Queries.rows(
                connection,
                FIND,
                row -> new Found(
                        get(row, "schema", String.class),
                        get(row, "persistence", String.class),
                        COLUMNS.stream()
                                .filter(column -> !List.of(get(row, "columns", String[].class))
                                        .contains(column))
                                .toList(),
                        get(row, "oid", Long.class),
                        get(row, "by_key", Boolean.class)),
                name);
    }

    /** One statement for any number of rows; in the order that they are given in. */
    Mono<Void> append(Connection inTransaction, List<NewRow> rows) {
        if (rows.isEmpty()) {
            return Mono.empty();
        }
        List<Integer> owners = new ArrayList<>();
        List<String> names = new ArrayList<>();
        List<String> values = new ArrayList<>();
        for (int i = 0; i < rows.size(); i++) {
            int owner = i + 1;
            rows.get(i).headers().forEach((header, value) -> {
                owners.add(owner);
                names.add(header);
                values.add(value);
            });
        }
        String sql = """
                WITH headers AS (
                    SELECT owner, array_agg(name ORDER BY nth) AS names, array_agg(value ORDER BY nth) AS values
                    FROM unnest($5::int[], $6::text[], $7::text[]) WITH ORDINALITY AS given (owner, name, value, nth)
                    GROUP BY owner)
                INSERT INTO %s (idempotency_key, kind, message_key, payload, header_names, header_values)
                SELECT rows.id, rows.kind, rows.key, decode(rows.payload, 'base64'),
                       COALESCE(headers.names, '{}'), COALESCE(headers.values, '{}')
                FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS rows (id, kind, key, payload, nth)
                LEFT JOIN headers ON headers.owner = rows.nth
                ORDER BY rows.nth
                ON CONFLICT (idempotency_key) DO NOTHING""".formatted(name);
        return Queries.execute(
                inTransaction,
                sql,
                texts(rows, NewRow::idempotencyKey),
                texts(rows, NewRow::kind),
                texts(rows, NewRow::key),
                texts(rows, row -> Base64.getEncoder().encodeToString(row.payload())),
                owners.toArray(Integer[]::new),
                names.toArray(String[]::new),
                values.toArray(String[]::new));
    }

    /**
     * Until the transaction ends, nobody else takes rows of the kind, and nobody is in the middle of settling some. A statement of its own: the
     * one behind it has to see what those before have done.
     */
    Mono<Void> waitForTurn(Connection inTransaction, String kind) {
        return Queries.execute(
                inTransaction,
                "SELECT pg_advisory_xact_lock(" + LOCK + ") FROM (SELECT " + LIMITS + ", " + NO_SORTS
                        + " OFFSET 0) AS limits",
                name,
                kind);
    }

    /** Behind the transaction that has taken them: nobody has to wait until they have been read. */
    Mono<List<OutboxTable.Row>> read(Connection connection, List<Lease> taken) {
        Map<Long, Integer> attempts = taken.stream().collect(Collectors.toMap(Lease::number, Lease::attempts));
        return Queries.rows(
                        connection,
                        "SELECT number, idempotency_key, kind, message_key, payload, header_names, header_values, appended_at FROM "
                                + name + " WHERE number = ANY ($1::bigint[]) ORDER BY number",
                        row -> read(row, attempts.getOrDefault(get(row, "number", Long.class), 0)),
                        (Object) attempts.keySet().toArray(Long[]::new))
                .collectList();
    }

    /** One statement for whatever became of any number of rows. */
    Mono<Void> settle(Connection connection, String kind, List<Settled> rows) {
        if (rows.isEmpty()) {
            return Mono.empty();
        }
        String sql = """
                WITH limits AS MATERIALIZED (SELECT %2$s),
                turn AS MATERIALIZED (SELECT pg_advisory_xact_lock_shared(%3$s) FROM limits)
                UPDATE %1$s AS kept SET
                    sent_at = CASE WHEN fate = 'SENT' THEN statement_timestamp() END,
                    parked_at = CASE WHEN fate = 'PARKED' THEN statement_timestamp() END,
                    due_at = statement_timestamp() + make_interval(secs => pause / 1000.0),
                    attempts = kept.attempts - CASE WHEN fate = 'RELEASED' THEN 1 ELSE 0 END,
                    reason = CASE fate WHEN 'SENT' THEN NULL WHEN 'RELEASED' THEN kept.reason ELSE why END
                FROM turn, unnest($3::bigint[], $4::bigint[], $5::text[], $6::bigint[], $7::text[]) AS settled (nr, until, fate, pause, why)
                WHERE kept.number = settled.nr AND kept.sent_at IS NULL
                  AND (fate = 'SENT' OR (%4$s = settled.until AND kept.parked_at IS NULL))""".formatted(name, LIMITS, LOCK, MICROS);
        return Queries.execute(
                connection,
                sql,
                name,
                kind,
                rows.stream().map(row -> row.lease().number()).toArray(Long[]::new),
                rows.stream().map(row -> row.lease().until()).toArray(Long[]::new),
                texts(rows, row -> row.fate().name()),
                rows.stream().map(row -> row.pause().toMillis()).toArray(Long[]::new),
                texts(rows, Settled::reason));
    }

    Mono<Long> deleteSent(Connection connection, Duration kept, int most) {
        return Queries.updated(connection, """
                DELETE FROM %1$s WHERE number IN (
                    SELECT number FROM %1$s WHERE sent_at < statement_timestamp() - make_interval(secs => $1::float8)
                    ORDER BY sent_at LIMIT $2::int FOR UPDATE SKIP LOCKED)""".formatted(name), kept.toMillis() / 1000.0, most);
    }

    Mono<State> state(Connection connection) {
        return Queries.rows(connection, """
                        SELECT count(*) FILTER (WHERE parked_at IS NULL) AS pending,
                               count(*) FILTER (WHERE parked_at IS NOT NULL) AS parked,
                               (extract(epoch FROM clock_timestamp() - min(appended_at) FILTER (WHERE parked_at IS NULL)) * 1000)::bigint
                                   AS oldest
                        FROM %s WHERE sent_at IS NULL""".formatted(name), row -> {
                    Long oldest = row.get("oldest", Long.class);
                    return new State(
                            get(row, "pending", Long.class),
                            get(row, "parked", Long.class),
                            oldest == null ? null : Duration.ofMillis(Math.max(0, oldest)));
                })
                .single();
    }

    Mono<List<ParkedRow>> parked(Connection connection, long after, int most) {
        return Queries.rows(
                        connection,
                        """
                        SELECT number, idempotency_key, kind, message_key, parked_at, attempts, COALESCE(reason, '') AS reason
                        FROM %s WHERE sent_at IS NULL AND parked_at IS NOT NULL AND number > $1 ORDER BY number LIMIT $2::int""".formatted(name),
                        row -> new ParkedRow(
                                get(row, "number", Long.class),
                                get(row, "idempotency_key", String.class),
                                get(row, "kind", String.class),
                                get(row, "message_key", String.class),
                                get(row, "parked_at", Instant.class),
                                get(row, "attempts", Integer.class),
                                get(row, "reason", String.class)),
                        after,
                        most)
                .collectList();
    }

    Mono<Boolean> resume(Connection connection, long number) {
        return Queries.updated(connection, """
                        UPDATE %s SET parked_at = NULL, attempts = 0, due_at = statement_timestamp()
                        WHERE number = $1 AND sent_at IS NULL AND parked_at IS NOT NULL""".formatted(name), number).map(rows -> rows > 0);
    }

    /** Behind the commit of what is to be sent, or just before it. */
    Mono<Void> tell(Connection connection) {
        return Queries.execute(connection, "SELECT pg_notify($1, $2)", CHANNEL, name);
    }

    Flux<String> told(Connection connection) {
        Connection at = connection;
        while (at instanceof Wrapped<?> wrapped && wrapped.unwrap() instanceof Connection inner) {
            at = inner;
        }
        if (!(at instanceof PostgresqlConnection postgres)) {
            return Flux.error(new IllegalArgumentException("connections of r2dbc-postgresql are needed, not "
                    + connection.getClass().getName()));
        }
        return Queries.execute(postgres, "LISTEN " + CHANNEL)
                .thenMany(Flux.defer(postgres::getNotifications))
                .map(notification -> String.valueOf(notification.getParameter()));
    }

    private static OutboxTable.Row read(Row row, int attempts) {
        return new OutboxTable.Row(
                get(row, "number", Long.class),
                get(row, "idempotency_key", String.class),
                get(row, "kind", String.class),
                get(row, "message_key", String.class),
                get(row, "payload", byte[].class),
                headers(get(row, "header_names", String[].class), get(row, "header_values", String[].class)),
                get(row, "appended_at", Instant.class),
                attempts);
    }

    private static Map<String, String> headers(String[] names, String[] values) {
        Map<String, String> headers = new LinkedHashMap<>();
        for (int i = 0; i < names.length; i++) {
            headers.put(names[i], values[i]);
        }
        return headers;
    }

    private static <R> String[] texts(List<R> rows, Function<R, String> text) {
        return rows.stream().map(text).toArray(String[]::new);
    }

    static <V> V get(Row row, String column, Class<V> type) {
        return Objects.requireNonNull(row.get(column, type), column);
    }
}
