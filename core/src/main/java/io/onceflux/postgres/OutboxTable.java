package io.onceflux.postgres;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * A table of what is to be sent, and was. Its columns are fixed; its name and schema are the user's. Immutable.
 *
 * <p>Names are taken literally, with their case, and are quoted. Who appends needs INSERT and SELECT on it; a relay SELECT and UPDATE, and
 * DELETE to remove what was sent.
 */
public final class OutboxTable {

    private final @Nullable Identifier schema;
    private final Identifier table;
    private final OutboxSql sql;

    private OutboxTable(@Nullable Identifier schema, Identifier table) {
        this.schema = schema;
        this.table = table;
        this.sql = new OutboxSql(schema, table);
    }

    /** The table {@code outbox}, found through the connection's search path. */
    public static OutboxTable outbox() {
        return named("outbox");
    }

    /** A table of another name. */
    public static OutboxTable named(String table) {
        return new OutboxTable(null, new Identifier(table));
    }

    /** This table in a schema; without one, the connection's search path finds it. */
    public OutboxTable inSchema(String name) {
        return new OutboxTable(new Identifier(name), table);
    }

    /**
     * What is to be sent.
     *
     * @param idempotencyKey unique in the table
     */
    @SuppressWarnings("ArrayRecordComponent") // Not compared.
    public record NewRow(String idempotencyKey, String kind, String key, byte[] payload, Map<String, String> headers) {}

    /**
     * What a relay has taken.
     *
     * @param number in the order in which rows were appended
     * @param attempts how often it was taken, this time included
     */
    @SuppressWarnings("ArrayRecordComponent") // Not compared.
    public record Row(
            long number,
            String idempotencyKey,
            String kind,
            String key,
            byte[] payload,
            Map<String, String> headers,
            Instant appendedAt,
            int attempts) {}

    /** What became of a row that was taken. */
    public enum Fate {
        SENT,
        /** To be taken again after a time. */
        AGAIN,
        PARKED,
        /** It was not tried. */
        RELEASED
    }

    /**
     * A row that was taken.
     *
     * @param attempts how often it was taken, this time included
     * @param until when it is due again, in microseconds: by that it is known whether it is still ours
     */
    public record Lease(long number, int attempts, long until) {}

    /**
     * What was taken.
     *
     * @param reached the key behind which the next look is to go on; empty where there is none
     */
    public record Taken(List<Lease> rows, String reached) {}

    /**
     * What became of a row.
     *
     * @param pause until it may be taken again, for {@link Fate#AGAIN}
     * @param reason why it was not sent; empty if it was, or was not tried
     */
    public record Settled(Lease lease, Fate fate, Duration pause, String reason) {}

    /**
     * A row that is not sent any more.
     *
     * @param parkedAt since when
     * @param reason what the last attempt failed with
     */
    public record ParkedRow(
            long number,
            String idempotencyKey,
            String kind,
            String key,
            Instant parkedAt,
            int attempts,
            String reason) {}

    /**
     * How the table is doing.
     *
     * @param pending rows that are to be sent
     * @param parked rows that are not sent any more
     * @param oldest how long the oldest of the pending has been waiting; null without one
     */
    public record State(long pending, long parked, @Nullable Duration oldest) {}

    /** SQL that creates the table and its indexes if they are not there; may be run again, or copied into a migration. */
    public String createSql() {
        return sql.create();
    }

    /** Creates the table and its indexes if they are not there. Several instances may do so at once. */
    public Mono<Void> create(ConnectionFactory connections) {
        return Mono.usingWhen(
                connections.create(), connection -> SchemaChange.run(connection, createSql()), Connection::close);
    }

    /**
     * Looks whether the table is there, survives a crash, and may be worked off.
     *
     * @param deletes whether what was sent is to be removed from it
     * @return the same with its schema, because an effect may change the search path; {@link UnfitTableException} with a sentence that says
     *     what to change
     */
    public Mono<OutboxTable> check(Connection connection, boolean deletes) {
        return Server.requireVersion(connection)
                .then(sql.found(connection).next())
                .switchIfEmpty(Mono.error(() -> UnfitTableException.missing(this, createSql())))
                .flatMap(found -> UniqueIndex.of(connection, found.oid()).map(indexes -> fit(found, indexes)))
                .delayUntil(fit -> new TableRights(
                                fit.sql.quotedName(),
                                "send what is in the outbox",
                                deletes ? List.of("SELECT", "UPDATE", "DELETE") : List.of("SELECT", "UPDATE"),
                                createSql())
                        .require(connection));
    }

    private OutboxTable fit(OutboxSql.Found found, List<UniqueIndex> indexes) {
        if (!found.missing().isEmpty()) {
            throw new UnfitTableException("Table %s has no columns %s; it is to be as this makes it: %s"
                    .formatted(this, found.missing(), createSql().strip().replaceAll("\\s+", " ")));
        }
        if (found.persistence().equals("u")) {
            throw UnfitTableException.unlogged(this, sql.quotedName(), "nothing in it would be sent");
        }
        UniqueIndex.require(indexes, List.of(new Identifier("idempotency_key")), toString(), sql.quotedName());
        if (!found.byKey()) {
            throw new UnfitTableException(
                    ("Table %s lacks an index of its keys: each look would read all that waits. This makes what is missing, and"
                                    + " leaves the rest: %s")
                            .formatted(this, createSql().strip().replaceAll("\\s+", " ")));
        }
        return inSchema(found.schema());
    }

    /** Appends rows in the caller's transaction; those whose idempotency key is there already are left as they are. */
    public Mono<Void> append(Connection inTransaction, List<NewRow> rows) {
        return sql.append(inTransaction, rows);
    }

    /**
     * Waits until nobody else takes rows of a kind; so it is for them until the transaction ends, which is to be soon.
     *
     * @return empty; after 5 s the database's error 55P03
     */
    public Mono<Void> waitForTurn(Connection inTransaction, String kind) {
        return sql.waitForTurn(inTransaction, kind);
    }

    /**
     * Takes rows of a kind that are due for a time: nobody else gets them before that is over. First those that were appended first; where most of
     * these have to wait, those of keys in the order of the keys. Of a key they are taken in the order in which they were appended, and none as
     * long as another one of it is taken, or waits to be tried again. In the transaction of {@link #waitForTurn}.
     *
     * <p>How much is read is bounded by {@code most} and the number of rows that are taken, wait to be tried again or are parked; not by how many
     * wait behind those.
     *
     * @param most how many at most
     * @param lease for how long
     * @param parkedBlock whether a row that is parked holds up those behind it
     * @param after {@link Taken#reached} of the look before; empty for the first
     * @return what was taken. If that is nothing, but a key was reached, or the look began behind one, there may be more
     */
    public Mono<Taken> take(
            Connection inTransaction, String kind, int most, Duration lease, boolean parkedBlock, String after) {
        return OutboxTake.from(sql.quotedName(), inTransaction, kind, most, lease, parkedBlock, after);
    }

    /** Reads rows that were taken, in the order in which they were appended. */
    public Mono<List<Row>> read(Connection connection, List<Lease> taken) {
        return sql.read(connection, taken);
    }

    /** Writes down what became of rows of a kind. What somebody else has taken since is left alone, unless it was sent. */
    public Mono<Void> settle(Connection connection, String kind, List<Settled> rows) {
        return sql.settle(connection, kind, rows);
    }

    /**
     * Removes rows that were sent longer ago.
     *
     * @param most how many at most
     * @return how many
     */
    public Mono<Long> deleteSent(Connection connection, Duration kept, int most) {
        return sql.deleteSent(connection, kept, most);
    }

    /** How the table is doing. Reads what is not sent. */
    public Mono<State> state(Connection connection) {
        return sql.state(connection);
    }

    /**
     * Rows that are parked, in the order in which they were appended.
     *
     * @param after the number to start behind; 0 for the first
     */
    public Mono<List<ParkedRow>> parked(Connection connection, long after, int most) {
        return sql.parked(connection, after, most);
    }

    /**
     * Lets a row that is parked be sent again, as if it had not been tried.
     *
     * @return whether it was parked
     */
    public Mono<Boolean> resume(Connection connection, long number) {
        return sql.resume(connection, number);
    }

    /**
     * Listens for {@link #tell}.
     *
     * @param connection to PostgreSQL itself, by r2dbc-postgresql
     * @return emits each time; does not end by itself. {@link IllegalArgumentException} for a connection of another driver
     */
    public Flux<String> told(Connection connection) {
        return sql.told(connection);
    }

    /** Tells relays that there is something to be sent. */
    public Mono<Void> tell(Connection connection) {
        return sql.tell(connection);
    }

    /** The name of the table, as a person writes it. */
    @Override
    public String toString() {
        return schema == null ? table.name() : schema.name() + "." + table.name();
    }
}
