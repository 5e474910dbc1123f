package io.onceflux.postgres;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.Readable;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/** The rows of a claim table, to be looked at by a person, and forgotten one by one with a word on why. */
public final class ClaimRows {

    /** Behind everything that begins with the same characters, in the order of bytes. */
    private static final String LAST = new String(Character.toChars(Character.MAX_CODE_POINT));

    private static final String KEY = """
            SELECT a.atttypid::regtype::text AS type, COALESCE(c.collname IN ('C', 'POSIX'), false) AS bytewise
            FROM pg_attribute a LEFT JOIN pg_collation c ON c.oid = a.attcollation
            WHERE a.attrelid = to_regclass($1) AND a.attname = $2 AND NOT a.attisdropped""";

    private static final String SIZE = """
            SELECT COALESCE(sum(CASE WHEN c.reltuples > 0 THEN c.reltuples ELSE pg_stat_get_live_tuples(c.oid) END), 0)::bigint AS rows, COALESCE(sum(pg_table_size(c.oid)), 0)::bigint AS data,
                   COALESCE(sum(pg_indexes_size(c.oid)), 0)::bigint AS indexes
            FROM pg_class c WHERE c.relkind = 'r' AND (c.oid = to_regclass($1)
                OR c.oid IN (SELECT t.relid FROM pg_partition_tree(to_regclass($1)) t))""";

    private final ClaimTable table;
    private final Identifier forgotten;

    /** The rows of a table. */
    public ClaimRows(ClaimTable table) {
        this.table = table;
        this.forgotten = table.table().with("_forgotten");
    }

    /**
     * A claim.
     *
     * @param consumer who has claimed; null where the table has no column for that
     * @param id as it is stored
     * @param claimedAt null where the table has no time
     * @param fingerprint null where there is none
     */
    public record Claim(
            @Nullable String consumer,
            String id,
            @Nullable Instant claimedAt,
            @Nullable Long fingerprint) {}

    /**
     * Which claims; null for all.
     *
     * @param prefix how their ids begin
     * @param since the earliest time of a claim
     * @param before the time before which a claim was made
     */
    public record Filter(
            @Nullable String consumer,
            @Nullable String prefix,
            @Nullable Instant since,
            @Nullable Instant before) {}

    /** A claim that somebody has removed, and when. */
    public record Forgotten(String consumer, String id, Instant at) {}

    /**
     * How large a table is.
     *
     * @param rows about, as of the last ANALYZE
     * @param dataBytes without indexes
     * @param indexBytes of all its indexes
     */
    public record Size(long rows, long dataBytes, long indexBytes) {}

    /**
     * A page of claims, in the order of consumer and id.
     *
     * @param after the last claim of the page before; null for the first page
     * @return at most {@code most}; fewer if there is no further one
     */
    public Mono<List<Claim>> page(Connection connection, Filter which, @Nullable Claim after, int most) {
        requireColumn(table.consumerColumn(), which.consumer(), "the consumer");
        requireColumn(table.processedAtColumn(), which.since(), "the time of a claim");
        requireColumn(table.processedAtColumn(), which.before(), "the time of a claim");
        return key(connection).flatMap(key -> {
            Conditions conditions = new Conditions();
            addFilter(conditions, which, key);
            if (after != null) {
                addBehind(conditions, after, key);
            }
            String sql = select() + conditions.where() + " ORDER BY " + Identifier.quotedList(table.keyColumns())
                    + " LIMIT " + most;
            return Queries.rows(connection, sql, this::claim, conditions.values.toArray())
                    .collectList()
                    .onErrorResume(TableRights.explaining(connection, toRead()));
        });
    }

    private void requireColumn(@Nullable Identifier column, @Nullable Object asked, String what) {
        if (asked != null && column == null) {
            throw new UnfitTableException(
                    "Table %s has no column for %s, so claims cannot be chosen by it.".formatted(table, what));
        }
    }

    private void addFilter(Conditions conditions, Filter which, Key key) {
        String id = table.keyColumn().quoted();
        if (which.consumer() != null) {
            conditions.add(quoted(table.consumerColumn()) + " = " + conditions.next(which.consumer()));
        }
        if (which.prefix() != null) {
            if (key.bytewise()) { // In another order what begins so need not stand together.
                conditions.add(id + " >= " + conditions.next(which.prefix()));
                conditions.add(id + " < " + conditions.next(which.prefix() + LAST));
            }
            conditions.add("starts_with(CAST(" + id + " AS text), " + conditions.next(which.prefix()) + ")");
        }
        if (which.since() != null) {
            conditions.add(quoted(table.processedAtColumn()) + " >= " + conditions.next(which.since()));
        }
        if (which.before() != null) {
            conditions.add(quoted(table.processedAtColumn()) + " < " + conditions.next(which.before()));
        }
    }

    private void addBehind(Conditions conditions, Claim after, Key key) {
        Identifier consumer = table.consumerColumn();
        String id = table.keyColumn().quoted();
        if (consumer == null) {
            conditions.add(id + " > " + key.cast(conditions.next(after.id())));
        } else {
            conditions.add("(" + consumer.quoted() + ", " + id + ") > ("
                    + conditions.next(Objects.requireNonNull(after.consumer())) + ", "
                    + key.cast(conditions.next(after.id())) + ")");
        }
    }

    private static String quoted(@Nullable Identifier column) {
        return Objects.requireNonNull(column).quoted();
    }

    /** The claim of a key; empty if there is none. */
    public Mono<Claim> find(Connection connection, String consumer, String id) {
        return key(connection).flatMap(key -> {
            Conditions conditions = ofKey(key, consumer, id);
            return Queries.rows(connection, select() + conditions.where(), this::claim, conditions.values.toArray())
                    .next()
                    .onErrorResume(TableRights.explaining(connection, toRead()));
        });
    }

    private Conditions ofKey(Key key, String consumer, String id) {
        Conditions conditions = new Conditions();
        Identifier column = table.consumerColumn();
        if (column != null) {
            conditions.add(column.quoted() + " = " + conditions.next(consumer));
        }
        conditions.add(table.keyColumn().quoted() + " = "
                + key.cast(conditions.next(key.type().canonical(id))));
        return conditions;
    }

    /** SQL that creates the table of what was forgotten, if it is not there: the claim table's name with {@code _forgotten} behind. */
    public String createForgottenSql() {
        return """
                CREATE TABLE IF NOT EXISTS %s (
                    "number" bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                    "forgotten_at" timestamptz NOT NULL DEFAULT clock_timestamp(),
                    "forgotten_by" text NOT NULL,
                    "reason" text NOT NULL,
                    "consumer" text COLLATE "C" NOT NULL,
                    "message_key" text COLLATE "C" NOT NULL,
                    "claimed_at" timestamptz,
                    "fingerprint" bigint
                );
                CREATE INDEX IF NOT EXISTS %s ON %s ("forgotten_at");
                """.formatted(forgottenName(), forgotten.with("_at").quoted(), forgottenName());
    }

    /** Runs {@link #createForgottenSql}; several may at once. */
    public Mono<Void> createForgotten(ConnectionFactory connections) {
        return Mono.usingWhen(
                connections.create(),
                connection -> SchemaChange.run(connection, createForgottenSql()),
                Connection::close);
    }

    /**
     * Removes a claim and writes down who has, and why, with one statement.
     *
     * @return whether it was there
     */
    public Mono<Boolean> forget(Connection connection, String consumer, String id, String who, String why) {
        return key(connection).flatMap(key -> {
            Conditions conditions = ofKey(key, consumer, id);
            String sql = """
                    WITH gone AS (DELETE FROM %s%s RETURNING %s AS claimed_at, %s AS fingerprint)
                    INSERT INTO %s ("consumer", "message_key", "claimed_at", "fingerprint", "forgotten_by", "reason")
                    SELECT %s, %s, claimed_at, fingerprint, %s, %s FROM gone""".formatted(
                            table.quotedName(),
                            conditions.where(),
                            timeOf(table.processedAtColumn()),
                            fingerprint(),
                            forgottenName(),
                            conditions.next(consumer) + "::text",
                            conditions.next(key.type().canonical(id)) + "::text",
                            conditions.next(who) + "::text",
                            conditions.next(why) + "::text");
            return Queries.updated(connection, sql, conditions.values.toArray())
                    .map(removed -> removed > 0)
                    .onErrorResume(TableRights.explaining(
                            connection,
                            onClaims("forget claims", "SELECT", "DELETE"),
                            onForgotten("write down what is forgotten", "INSERT")));
        });
    }

    private TableRights toRead() {
        return onClaims("read claims", "SELECT");
    }

    private TableRights onClaims(String work, String... needed) {
        return new TableRights(table.quotedName(), work, List.of(needed), table.createSql());
    }

    private TableRights onForgotten(String work, String... needed) {
        return new TableRights(forgottenName(), work, List.of(needed), createForgottenSql());
    }

    /** What was forgotten from a time on, by the server's clock, in the order of that. */
    public Mono<List<Forgotten>> forgottenSince(Connection connection, Instant since) {
        return Queries.rows(
                        connection,
                        "SELECT \"consumer\", \"message_key\", \"forgotten_at\" FROM " + forgottenName()
                                + " WHERE \"forgotten_at\" >= $1 ORDER BY \"number\"",
                        row -> new Forgotten(
                                Objects.requireNonNull(row.get(0, String.class)),
                                Objects.requireNonNull(row.get(1, String.class)),
                                Objects.requireNonNull(row.get(2, Instant.class))),
                        since)
                .collectList()
                .onErrorResume(TableRights.explaining(connection, onForgotten("read what was forgotten", "SELECT")));
    }

    /** The server's clock. */
    public static Mono<Instant> now(Connection connection) {
        return Queries.rows(
                        connection,
                        "SELECT clock_timestamp()",
                        row -> Objects.requireNonNull(row.get(0, Instant.class)))
                .single();
    }

    /** How large the table is; from the catalogue, at once. */
    public Mono<Size> size(Connection connection) {
        return key(connection)
                .thenMany(Queries.rows(
                        connection,
                        SIZE,
                        row -> new Size(
                                Objects.requireNonNull(row.get(0, Long.class)),
                                Objects.requireNonNull(row.get(1, Long.class)),
                                Objects.requireNonNull(row.get(2, Long.class))),
                        table.quotedName()))
                .single();
    }

    /** When the oldest claim was made; empty without a claim or a time. It reads the whole table, as there is no index on the time. */
    public Mono<Instant> oldest(Connection connection) {
        Identifier time = table.processedAtColumn();
        return time == null
                ? Mono.empty()
                : Queries.rows(
                                connection,
                                "SELECT min(%s)::timestamptz AS oldest FROM %s WHERE %s IS NOT NULL HAVING count(*) > 0"
                                        .formatted(time.quoted(), table.quotedName(), time.quoted()),
                                row -> Objects.requireNonNull(row.get(0, Instant.class)))
                        .next()
                        .onErrorResume(TableRights.explaining(connection, toRead()));
    }

    /**
     * The column of the id.
     *
     * @param bytewise whether it is a text, ordered byte by byte
     */
    private record Key(KeyType type, boolean bytewise) {
        String cast(String parameter) {
            return "CAST(" + parameter + " AS " + type.sqlName() + ")";
        }
    }

    private Mono<Key> key(Connection connection) {
        return Queries.rows(
                        connection,
                        KEY,
                        row -> new Key(
                                "uuid".equals(row.get("type", String.class)) ? KeyType.UUID_TYPE : KeyType.TEXT,
                                Boolean.TRUE.equals(row.get("bytewise", Boolean.class))),
                        table.quotedName(),
                        table.keyColumn().name())
                .next()
                .switchIfEmpty(Mono.error(() -> new UnfitTableException(
                        "Table %s with a column %s does not exist in this database, or is not in the search path."
                                .formatted(table, table.keyColumn()))));
    }

    private String select() {
        Identifier consumer = table.consumerColumn();
        return "SELECT %s AS consumer, CAST(%s AS text) AS id, %s AS claimed_at, %s AS fingerprint FROM %s"
                .formatted(
                        consumer == null ? "NULL::text" : consumer.quoted(),
                        table.keyColumn().quoted(),
                        timeOf(table.processedAtColumn()),
                        fingerprint(),
                        table.quotedName());
    }

    private static String timeOf(@Nullable Identifier column) {
        return column == null ? "NULL::timestamptz" : "CAST(" + column.quoted() + " AS timestamptz)";
    }

    private String fingerprint() {
        Identifier column = table.fingerprintColumn();
        return column == null ? "NULL::bigint" : column.quoted();
    }

    private Claim claim(Readable row) {
        return new Claim(
                row.get("consumer", String.class),
                Objects.requireNonNull(row.get("id", String.class)),
                row.get("claimed_at", Instant.class),
                row.get("fingerprint", Long.class));
    }

    private String forgottenName() {
        Identifier schema = table.schema();
        return schema == null ? forgotten.quoted() : schema.quoted() + "." + forgotten.quoted();
    }

    /** Conditions, with the values of their parameters in order. */
    private static final class Conditions {

        private final List<String> all = new ArrayList<>();
        private final List<Object> values = new ArrayList<>();

        void add(String condition) {
            all.add(condition);
        }

        String next(Object value) {
            values.add(value);
            return "$" + values.size();
        }

        String where() {
            return all.isEmpty() ? "" : " WHERE " + String.join(" AND ", all);
        }
    }

    @Override
    public String toString() {
        return table.toString();
    }
}
