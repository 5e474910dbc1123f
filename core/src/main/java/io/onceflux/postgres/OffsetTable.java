package io.onceflux.postgres;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.Row;
import io.r2dbc.spi.Statement;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * A table with a row for each consumer and partition of a log, which has the next offset: what is before it is done. Its columns are
 * fixed; its name and schema are the user's. Immutable.
 *
 * <p>Names are taken literally, with their case, and are quoted. The role needs SELECT, INSERT and UPDATE on it, and DELETE for
 * {@link #forget}.
 */
public final class OffsetTable {

    private final @Nullable Identifier schema;
    private final Identifier table;

    private OffsetTable(@Nullable Identifier schema, Identifier table) {
        this.schema = schema;
        this.table = table;
    }

    /** The table {@code consumer_offsets}, found through the connection's search path. */
    public static OffsetTable consumerOffsets() {
        return named("consumer_offsets");
    }

    /** A table of another name. */
    public static OffsetTable named(String table) {
        return new OffsetTable(null, new Identifier(table));
    }

    /** This table in a schema; without one, the connection's search path finds it. */
    public OffsetTable inSchema(String name) {
        return new OffsetTable(new Identifier(name), table);
    }

    /**
     * A partition of a log.
     *
     * @param topic the name of the topic
     * @param topicId what tells the topic from another of the same name that is made once it is deleted
     * @param partition the partition
     */
    public record Partition(String topic, String topicId, int partition) {}

    /**
     * A row.
     *
     * @param partition the partition
     * @param nextOffset the offset before which all is done
     */
    public record Place(Partition partition, long nextOffset) {}

    /**
     * Where a partition is to be moved.
     *
     * @param partition the partition
     * @param from the first offset that is to be done: where there is no row yet, what is before it counts as done
     * @param to the next offset afterwards
     */
    public record Step(Partition partition, long from, long to) {}

    /**
     * SQL that creates the table if it is not there; may be run again, or copied into a Flyway or Liquibase migration. Half of each page is
     * kept free: a row is written anew with every transaction, and stays on its page so.
     */
    public String createSql() {
        return """
                CREATE TABLE IF NOT EXISTS %s (
                    "consumer" text COLLATE "C" NOT NULL,
                    "topic" text COLLATE "C" NOT NULL,
                    "topic_id" text COLLATE "C" NOT NULL,
                    "partition" integer NOT NULL,
                    "next_offset" bigint NOT NULL,
                    "moved_from" bigint NOT NULL,
                    "moved_at" timestamptz NOT NULL DEFAULT now(),
                    PRIMARY KEY ("consumer", "topic_id", "partition")
                ) WITH (fillfactor = 50);
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
     * Looks whether the table is there and survives a crash.
     *
     * @return the same with its schema, because an effect may change the search path; {@link UnfitTableException} with a sentence that
     *     says what to change
     */
    public Mono<OffsetTable> check(Connection connection) {
        return Server.requireVersion(connection)
                .then(Queries.rows(connection, """
                                SELECT c.relpersistence::text AS persistence, n.nspname::text AS schema
                                FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                                WHERE c.oid = to_regclass($1)""", this::fit, quotedName()).next())
                .switchIfEmpty(Mono.error(() -> UnfitTableException.missing(this, createSql())));
    }

    private OffsetTable fit(Row row) {
        if ("u".equals(row.get("persistence", String.class))) {
            throw UnfitTableException.unlogged(
                    this, quotedName(), "every message that comes again could be applied again");
        }
        return inSchema(Objects.requireNonNull(row.get("schema", String.class)));
    }

    /**
     * Moves partitions forward in the caller's transaction, none of them back, all with one statement, and in an order of its own, so
     * that two callers with the same partitions cannot deadlock. Waits for another transaction that moves one of them.
     *
     * @param inTransaction a connection with a transaction under way
     * @param consumer the consumer
     * @param steps the steps, one for each partition
     * @param lockTimeout set for the rest of the transaction, at no round trip of its own
     * @return where the partitions were before: what is at that offset or behind it is fresh; {@link UnfitTableException} if a rule or
     *     trigger of the table took a row away, or the database's own error
     */
    public Mono<List<Place>> move(
            Connection inTransaction, String consumer, Collection<Step> steps, Duration lockTimeout) {
        String sql = """
                WITH bounded AS MATERIALIZED (SELECT set_config('lock_timeout', $7, true))
                INSERT INTO %s AS kept (consumer, topic, topic_id, partition, next_offset, moved_from)
                SELECT $1, topic, topic_id, partition, upto, start
                FROM bounded, unnest($2::text[], $3::text[], $4::int[], $5::bigint[], $6::bigint[])
                    AS steps (topic, topic_id, partition, start, upto)
                ORDER BY topic_id, partition
                ON CONFLICT (consumer, topic_id, partition) DO UPDATE SET
                    moved_from = kept.next_offset,
                    next_offset = GREATEST(kept.next_offset, EXCLUDED.next_offset),
                    moved_at = now()
                RETURNING topic, topic_id, partition, moved_from AS place""".formatted(quotedName());
        return Mono.defer(() -> {
            List<Step> all = List.copyOf(steps);
            Statement statement = inTransaction
                    .createStatement(sql)
                    .bind(0, consumer)
                    .bind(1, all.stream().map(step -> step.partition().topic()).toArray(String[]::new))
                    .bind(
                            2,
                            all.stream().map(step -> step.partition().topicId()).toArray(String[]::new))
                    .bind(
                            3,
                            all.stream()
                                    .map(step -> step.partition().partition())
                                    .toArray(Integer[]::new))
                    .bind(4, all.stream().map(Step::from).toArray(Long[]::new))
                    .bind(5, all.stream().map(Step::to).toArray(Long[]::new))
                    .bind(6, Long.toString(lockTimeout.toMillis()));
            return Flux.from(statement.execute())
                    .concatMap(result -> result.map((row, metadata) -> read(row)))
                    .collectList()
                    .doOnNext(places -> requireAll(all, places));
        });
    }

    private void requireAll(List<Step> steps, List<Place> places) {
        if (places.size() != steps.size()) {
            throw new UnfitTableException(
                    "table %s has not stored the move of a partition: a trigger or rule took it away".formatted(this));
        }
    }

    /** Where all partitions of a consumer are. */
    public Mono<List<Place>> places(Connection connection, String consumer) {
        return Queries.rows(
                        connection,
                        "SELECT topic, topic_id, partition, next_offset AS place FROM %s WHERE consumer = $1"
                                .formatted(quotedName()),
                        OffsetTable::read,
                        consumer)
                .collectList();
    }

    /**
     * Removes the rows of a topic: for one that was deleted and made anew on purpose, or whose log was. Not while the consumer runs.
     *
     * @return how many there were
     */
    public Mono<Long> forget(Connection connection, String consumer, String topic) {
        return Queries.updated(
                connection,
                "DELETE FROM %s WHERE consumer = $1 AND topic = $2".formatted(quotedName()),
                consumer,
                topic);
    }

    private static Place read(Row row) {
        return new Place(
                new Partition(
                        get(row, "topic", String.class),
                        get(row, "topic_id", String.class),
                        get(row, "partition", Integer.class)),
                get(row, "place", Long.class));
    }

    private static <V> V get(Row row, String column, Class<V> type) {
        return Objects.requireNonNull(row.get(column, type), column);
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
