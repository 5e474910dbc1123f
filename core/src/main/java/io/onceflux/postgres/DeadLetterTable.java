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
        this.sql = new DeadLetterTableSql(schema == null ? table.quoted() : schema.quoted() + "." + table.quoted());
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

    /** SQL that creates the table if it is not there; may be run again, or copied into a Flyway or Liquibase migration. */
    public String createSql() {
        return sql.create();
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
     * Stores a dead letter, or renews it if the consumer has one with that key already.
     *
     * @return completes when it is written in the caller's transaction; the database's own error
     */
    public Mono<Void> store(Connection inTransaction, DeadLetterRow row) {
        return sql.store(inTransaction, row);
    }

    /**
     * Dead letters of a consumer in the order of their arrival; all at once, so that the connection is free when they are handled.
     *
     * @param after the number to start behind; 0 for the first
     * @param most how many at most
     */
    public Mono<List<DeadLetterRow>> page(Connection connection, String consumer, long after, int most) {
        return sql.page(connection, consumer, after, most);
    }

    /** The highest number of a dead letter of the consumer; 0 if there is none. */
    public Mono<Long> last(Connection connection, String consumer) {
        return sql.last(connection, consumer);
    }

    /** Removes a dead letter, unless it has been renewed since it was read. */
    public Mono<Void> remove(Connection connection, DeadLetterRow row) {
        return sql.remove(connection, row);
    }

    /** The name of the table, as a person writes it. */
    @Override
    public String toString() {
        return schema == null ? table.name() : schema.name() + "." + table.name();
    }
}
