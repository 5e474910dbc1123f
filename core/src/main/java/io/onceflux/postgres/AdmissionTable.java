package io.onceflux.postgres;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.Row;
import java.time.Duration;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/**
 * A table of the messages that somebody has admitted although they are too old, with who and why. A row is the claim of its message, too: it
 * is used once, in the transaction of the effect, and stays. Its columns are fixed; its name and schema are the user's. Immutable.
 *
 * <p>Names are taken literally, with their case, and are quoted. A consumer's role needs SELECT and UPDATE on it; who admits, SELECT and
 * INSERT.
 */
public final class AdmissionTable {

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
     * What was admitted of some ids.
     *
     * @param now used by this transaction: each is fresh
     * @param before used by one that has committed: each is a duplicate
     */
    public record Used(Set<String> now, Set<String> before) {

        /** Nothing. */
        public static final Used NONE = new Used(Set.of(), Set.of());
    }

    /** SQL that creates the table if it is not there; may be run again, or copied into a Flyway or Liquibase migration. */
    public String createSql() {
        return """
                CREATE TABLE IF NOT EXISTS %s (
                    "consumer" text COLLATE "C" NOT NULL,
                    "message_key" text COLLATE "C" NOT NULL,
                    "admitted_at" timestamptz NOT NULL DEFAULT clock_timestamp(),
                    "admitted_by" text NOT NULL,
                    "reason" text NOT NULL,
                    "used_at" timestamptz,
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
        return rights("use what was admitted", "SELECT", "UPDATE")
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
     * Uses what was admitted of some ids, in the caller's transaction. Waits for another transaction that uses one of them.
     *
     * @param inTransaction a connection with a transaction under way
     * @param lockTimeout set for the rest of the transaction
     */
    public Mono<Used> use(Connection inTransaction, String consumer, Collection<String> ids, Duration lockTimeout) {
        if (ids.isEmpty()) {
            return Mono.just(Used.NONE);
        }
        String[] asked = ids.toArray(String[]::new);
        return LockWaits.bound(inTransaction, lockTimeout)
                .then(Mono.defer(() -> useNow(inTransaction, consumer, asked)))
                .flatMap(now -> now.size() == asked.length
                        ? Mono.just(new Used(now, Set.of()))
                        : usedBefore(inTransaction, consumer, asked, now));
    }

    /** In an order of its own, so that two callers with the same ids cannot deadlock. */
    private Mono<Set<String>> useNow(Connection inTransaction, String consumer, String[] ids) {
        return keys(inTransaction, """
                UPDATE %1$s AS kept SET used_at = clock_timestamp()
                FROM (SELECT message_key FROM %1$s WHERE consumer = $1 AND message_key = ANY($2) AND used_at IS NULL
                      ORDER BY message_key FOR UPDATE) AS free
                WHERE kept.consumer = $1 AND kept.message_key = free.message_key
                RETURNING kept.message_key""".formatted(quotedName()), consumer, ids);
    }

    /** A statement of its own: the one before does not see what was committed while it waited. */
    private Mono<Used> usedBefore(Connection inTransaction, String consumer, String[] ids, Set<String> now) {
        return keys(
                        inTransaction,
                        "SELECT message_key FROM %s WHERE consumer = $1 AND message_key = ANY($2) AND used_at IS NOT NULL"
                                .formatted(quotedName()),
                        consumer,
                        ids)
                .map(used -> {
                    Set<String> before = new HashSet<>(used);
                    before.removeAll(now);
                    return new Used(now, before);
                });
    }

    private static Mono<Set<String>> keys(Connection connection, String sql, String consumer, String[] ids) {
        return Queries.rows(connection, sql, row -> Objects.requireNonNull(row.get(0, String.class)), consumer, ids)
                .collectList()
                .map(Set::copyOf);
    }

    /**
     * Admits a message.
     *
     * @return false if it was admitted before, used or not: the row stays as it is
     */
    public Mono<Boolean> admit(Connection connection, String consumer, String id, String who, String why) {
        return Queries.updated(connection, """
                        INSERT INTO %s ("consumer", "message_key", "admitted_by", "reason") VALUES ($1, $2, $3, $4)
                        ON CONFLICT ("consumer", "message_key") DO NOTHING""".formatted(quotedName()), consumer, id, who, why)
                .map(rows -> rows > 0)
                .onErrorResume(TableRights.explaining(connection, rights("admit messages", "SELECT", "INSERT")));
    }

    private TableRights rights(String work, String... needed) {
        return new TableRights(quotedName(), work, List.of(needed), createSql());
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
