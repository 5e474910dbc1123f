package io.onceflux.postgres;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import java.util.List;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/**
 * A table that keeps dead letters: the body as it was, and why it was given up. Its columns are fixed; its name and schema are the
 * user's. Immutable.
 *
 * <p>Names are taken literally, with their case, and are quoted. The role needs SELECT, INSERT, UPDATE and DELETE on it.
 */
public final class DeadLetterTable {

    private final @Nullable Identifier schema;
    private final Identifier table;
    private final DeadLetterTableSql sql;

    private DeadLetterTable(@Nullable Identifier schema, Identifier table) {
        this.schema = schema;
        this.table = table;
        this.sql = new DeadLetterTableSql(
                schema == null ? table.quoted() : schema.quoted() + "." + table.quoted(), table.with("_letter_key"));
    }

    /** The table {@code dead_letters}, found through the connection's search path. */
    public static DeadLetterTable deadLetters() {
        return named("dead_letters");
    }

    /** A table of another name. */
    public static DeadLetterTable named(String table) {
        return new DeadLetterTable(null, new Identifier(table));
    }

    /** This table in a schema; without one, the connection's search path finds it. */
    public DeadLetterTable inSchema(String name) {
        return new DeadLetterTable(new Identifier(name), table);
    }

    /**
     * SQL that creates the table and its unique index if they are not there; may be run again, or copied into a Flyway or Liquibase
     * migration.
     */
    public String createSql() {
        return sql.create();
    }

    /** The part of {@link #createSql} that makes a letter of a key with one body unique. */
    public String createIndexSql() {
        return sql.createIndex();
    }

    /**
     * Creates the table and its index if they are not there. Several instances may do so at once.
     *
     * @return completes when they are there; the database's error if they could not be created
     */
    public Mono<Void> create(ConnectionFactory connections) {
        return Mono.usingWhen(
                connections.create(), connection -> SchemaChange.run(connection, createSql()), Connection::close);
    }

    /**
     * Looks whether the table outlives a crash of PostgreSQL.
     *
     * @return completes if it does, or is not there; {@link UnfitTableException} with a sentence that says what to change
     */
    public Mono<Void> requireLogged(Connection connection) {
        return sql.unlogged(connection)
                .flatMap(unlogged -> Mono.<Void>error(() ->
                        UnfitTableException.unlogged(this, unlogged, "the messages in it have left their source")))
                .then();
    }

    /**
     * Stores a dead letter, or renews it if the consumer has one with that key and the same body already. Another body with that key is
     * a dead letter of its own.
     *
     * @return its number, once it is written in the caller's transaction; {@link UnfitTableException} if a rule or trigger of the
     *     table took it away, or the database's own error
     */
    public Mono<Long> store(Connection inTransaction, DeadLetterRow row) {
        return sql.store(inTransaction, row)
                .switchIfEmpty(Mono.error(() -> new UnfitTableException(
                        "table %s has not stored a dead letter: a trigger or rule took it away".formatted(this))));
    }

    /**
     * Writes why a dead letter failed once more (kind, reason, SQLSTATE, attempts and time), unless it has been renewed or removed
     * since it was read.
     *
     * @param row with the number and times that were read
     * @return whether it was there to be renewed
     */
    public Mono<Boolean> renew(Connection connection, DeadLetterRow row) {
        return sql.renew(connection, row);
    }

    /**
     * Dead letters of a consumer in the order of their arrival; all at once, so that the connection is free when they are handled. What
     * a row has otherwise than this release writes it is left out of the row, and does not hide the others.
     *
     * @param after the number to start behind; 0 for the first
     * @param upTo the highest number
     * @param bytes how much bodies and headers may be together; the first is read however large it is
     * @return at most 100; none if there is no further one
     */
    public Mono<List<DeadLetterRow>> page(Connection connection, String consumer, long after, long upTo, long bytes) {
        return sql.page(connection, consumer, after, upTo, bytes);
    }

    /** The highest number of a dead letter of the consumer; 0 if there is none. */
    public Mono<Long> last(Connection connection, String consumer) {
        return sql.last(connection, consumer);
    }

    /**
     * Removes a dead letter, unless it has been renewed since it was read.
     *
     * @return whether it was there to be removed
     */
    public Mono<Boolean> remove(Connection connection, DeadLetterRow row) {
        return sql.remove(connection, row);
    }

    /** The name of the table, as a person writes it. */
    @Override
    public String toString() {
        return schema == null ? table.name() : schema.name() + "." + table.name();
    }
}
