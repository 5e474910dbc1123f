package io.onceflux.postgres;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.Row;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/**
 * A table of the messages that a consumer has refused because they are too old, and of what somebody has decided about them. A row that is
 * admitted is the claim of its message, too: it is used once, in the transaction of the effect, and stays. Its columns are fixed; its name and
 * schema are the user's. Immutable.
 *
 * <p>Only what was refused can be admitted: what was too old then will not be in time again, so that nobody else can claim it.
 *
 * <p>Names are taken literally, with their case, and are quoted. A consumer's role needs SELECT, INSERT and UPDATE on it; who admits, SELECT
 * and UPDATE.
 */
public final class AdmissionTable {

    private static final String OF_KEY = "\"consumer\" = $1 AND \"message_key\" = $2";

    private final @Nullable Identifier schema;
    private final Identifier table;

    private AdmissionTable(@Nullable Identifier schema, Identifier table) {
        this.schema = schema;
        this.table = table;
    }

    /** The table {@code admitted_messages}, found through the connection's search path. */
    public static AdmissionTable admittedMessages() {
        return named("admitted_messages");
    }

    /** A table of another name. */
    public static AdmissionTable named(String table) {
        return new AdmissionTable(null, new Identifier(table));
    }

    /** This table in a schema; without one, the connection's search path finds it. */
    public AdmissionTable inSchema(String name) {
        return new AdmissionTable(new Identifier(name), table);
    }

    /**
     * What was admitted.
     *
     * @param isUsed whether its message was applied
     * @param fingerprint of that message; null where it is not known
     */
    public record Admitted(boolean isUsed, @Nullable Long fingerprint) {}

    /**
     * A message that was refused, and not admitted so far.
     *
     * @param id as it is kept
     * @param reason why it was refused
     * @param at when, for the first time
     */
    public record Refused(String id, String reason, Instant at) {}

    /** SQL that creates the table if it is not there; may be run again, or copied into a Flyway or Liquibase migration. */
    public String createSql() {
        return """
                CREATE TABLE IF NOT EXISTS %s (
                    "consumer" text COLLATE "C" NOT NULL,
                    "message_key" text COLLATE "C" NOT NULL,
                    "refused_at" timestamptz NOT NULL DEFAULT clock_timestamp(),
                    "reason" text NOT NULL,
                    "admitted_at" timestamptz,
                    "used_at" timestamptz,
                    "fingerprint" bigint,
                    "history" text[] NOT NULL DEFAULT '{}',
                    PRIMARY KEY ("consumer", "message_key")
                );
                """.formatted(quotedName());
    }

    /**
     * Creates the table if it is not there. Several instances may do so at once.
     *
     * @return completes when it is there; the database's error if it could not be created
     */
    public Mono<Void> create(ConnectionFactory connections) {
        return Mono.usingWhen(
                connections.create(), connection -> SchemaChange.run(connection, createSql()), Connection::close);
    }

    /**
     * Looks whether a consumer can use the table.
     *
     * @return the same with its schema, because an effect may change the search path; {@link UnfitTableException} with a sentence that
     *     says what to change
     */
    public Mono<AdmissionTable> check(Connection connection) {
        return rights("use what was admitted", "SELECT", "INSERT", "UPDATE")
                .require(connection)
                .thenMany(Queries.rows(connection, """
                        SELECT c.relpersistence::text AS persistence, n.nspname::text AS schema
                        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                        WHERE c.oid = to_regclass($1)""", this::fit, quotedName()))
                .single();
    }

    private AdmissionTable fit(Row row) {
        if ("u".equals(row.get("persistence", String.class))) {
            throw UnfitTableException.unlogged(
                    this, quotedName(), "nobody would know what was applied of what was admitted");
        }
        return inSchema(Objects.requireNonNull(row.get("schema", String.class)));
    }

    /**
     * What was admitted of some ids, locked for the rest of the transaction: waits for another one that looks at one of them. In an order of its
     * own, so that two callers with the same ids cannot deadlock.
     *
     * @param inTransaction a connection with a transaction under way
     * @param lockTimeout set for the rest of the transaction
     */
    public Mono<Map<String, Admitted>> admitted(
            Connection inTransaction, String consumer, List<String> ids, Duration lockTimeout) {
        return LockWaits.bound(inTransaction, lockTimeout)
                .thenMany(Queries.rows(
                        inTransaction,
                        """
                        SELECT message_key, used_at IS NOT NULL, fingerprint FROM %s
                        WHERE consumer = $1 AND message_key = ANY($2) AND admitted_at IS NOT NULL
                        ORDER BY message_key FOR UPDATE""".formatted(quotedName()),
                        row -> Map.entry(
                                text(row, 0),
                                new Admitted(Boolean.TRUE.equals(row.get(1, Boolean.class)), row.get(2, Long.class))),
                        consumer,
                        ids.toArray(String[]::new)))
                .collectMap(Map.Entry::getKey, Map.Entry::getValue);
    }

    /** Notes that admitted messages are applied, in the transaction that does so. */
    public Mono<Void> use(Connection inTransaction, String consumer, Map<String, @Nullable Long> fingerprints) {
        return fingerprints.isEmpty()
                ? Mono.empty()
                : Queries.execute(
                        inTransaction,
                        """
                        UPDATE %s AS kept SET used_at = clock_timestamp(), fingerprint = used.fingerprint
                        FROM unnest($2::text[], $3::bigint[]) AS used (id, fingerprint)
                        WHERE kept.consumer = $1 AND kept.message_key = used.id""".formatted(quotedName()),
                        consumer,
                        fingerprints.keySet().toArray(String[]::new),
                        fingerprints.values().toArray(Long[]::new));
    }

    /** Notes that messages are refused, so that they can be admitted, in the caller's transaction. */
    public Mono<Void> refuse(Connection inTransaction, String consumer, Map<String, String> reasons) {
        return reasons.isEmpty()
                ? Mono.empty()
                : Queries.execute(
                        inTransaction,
                        """
                        INSERT INTO %s (consumer, message_key, reason)
                        SELECT $1, id, reason FROM unnest($2::text[], $3::text[]) AS refused (id, reason) ORDER BY id
                        ON CONFLICT DO NOTHING""".formatted(quotedName()),
                        consumer,
                        reasons.keySet().toArray(String[]::new),
                        reasons.values().toArray(String[]::new));
    }

    /**
     * A page of what was refused and not admitted, in the order of the ids.
     *
     * @param after the id to start behind; empty for the first page
     */
    public Mono<List<Refused>> refused(Connection connection, String consumer, String after, int most) {
        return Queries.rows(
                        connection,
                        """
                        SELECT message_key, reason, refused_at FROM %s
                        WHERE consumer = $1 AND message_key > $2 AND admitted_at IS NULL ORDER BY message_key LIMIT %d""".formatted(quotedName(), most),
                        row -> new Refused(
                                text(row, 0), text(row, 1), Objects.requireNonNull(row.get(2, Instant.class))),
                        consumer,
                        after)
                .collectList()
                .onErrorResume(TableRights.explaining(connection, rights("read what was refused", "SELECT")));
    }

    /**
     * Admits a message.
     *
     * @param note is added to the row's history
     * @return false if none with that id was refused, or it was admitted before
     */
    public Mono<Boolean> admit(Connection connection, String consumer, String id, String note) {
        return change(connection, "\"admitted_at\" = clock_timestamp()", "\"admitted_at\" IS NULL", consumer, id, note);
    }

    /** Takes an admission back, used or not: the message is one that was refused. False if it was not admitted. */
    public Mono<Boolean> forget(Connection connection, String consumer, String id, String note) {
        return change(
                connection,
                "\"admitted_at\" = NULL, \"used_at\" = NULL, \"fingerprint\" = NULL",
                "\"admitted_at\" IS NOT NULL",
                consumer,
                id,
                note);
    }

    private Mono<Boolean> change(
            Connection connection, String change, String where, String consumer, String id, String note) {
        String sql =
                "UPDATE %s SET %s, \"history\" = \"history\" || (clock_timestamp()::text || ' ' || $3::text) WHERE %s AND %s"
                        .formatted(quotedName(), change, OF_KEY, where);
        return Queries.updated(connection, sql, consumer, id, note)
                .map(rows -> rows > 0)
                .onErrorResume(TableRights.explaining(connection, rights("admit messages", "SELECT", "UPDATE")));
    }

    private static String text(Row row, int column) {
        return Objects.requireNonNull(row.get(column, String.class));
    }

    private TableRights rights(String work, String... needed) {
        return new TableRights(quotedName(), work, Arrays.asList(needed), createSql());
    }

    private String quotedName() {
        return schema == null ? table.quoted() : schema.quoted() + "." + table.quoted();
    }

    /** The name of the table, as a person writes it. */
    @Override
    public String toString() {
        return schema == null ? table.name() : schema.name() + "." + table.name();
    }
}
