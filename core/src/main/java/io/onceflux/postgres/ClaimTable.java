package io.onceflux.postgres;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/**
 * The table that claims are written to: its name and its columns. Immutable.
 *
 * <p>The default is {@code processed_messages (consumer, message_key, processed_at)} with the primary key
 * {@code (consumer, message_key)}; {@link #createSql()} prints it. A table that a service already has is described instead:
 *
 * <pre>{@code
 * ClaimTable.named("inbox").inSchema("billing").withKeyColumn("event_id").withoutProcessedAt()   // two-column key
 * ClaimTable.named("processed_events").withOneColumnKey("message_id")                            // one-column key
 * }</pre>
 *
 * <p>Names are taken literally, with their case, and are quoted.
 */
public final class ClaimTable {

    private final @Nullable Identifier schema;
    private final Identifier table;
    private final @Nullable Identifier consumerColumn;
    private final Identifier keyColumn;
    private final @Nullable Identifier processedAtColumn;
    private final @Nullable Identifier fingerprintColumn;
    private final @Nullable Buckets buckets;

    private ClaimTable(
            @Nullable Identifier schema,
            Identifier table,
            @Nullable Identifier consumerColumn,
            Identifier keyColumn,
            @Nullable Identifier processedAtColumn,
            @Nullable Identifier fingerprintColumn,
            @Nullable Buckets buckets) {
        this.schema = schema;
        this.table = table;
        this.consumerColumn = consumerColumn;
        this.keyColumn = keyColumn;
        this.processedAtColumn = processedAtColumn;
        this.fingerprintColumn = fingerprintColumn;
        this.buckets = buckets;
    }

    /** The default table, found through the connection's search path. */
    public static ClaimTable processedMessages() {
        return named("processed_messages");
    }

    /** A table of another name, with the default columns until told otherwise. */
    public static ClaimTable named(String table) {
        return new ClaimTable(
                null,
                new Identifier(table),
                new Identifier("consumer"),
                new Identifier("message_key"),
                new Identifier("processed_at"),
                null,
                null);
    }

    /** This table in a schema; without one, the connection's search path finds it. */
    public ClaimTable inSchema(String name) {
        return new ClaimTable(
                new Identifier(name), table, consumerColumn, keyColumn, processedAtColumn, fingerprintColumn, buckets);
    }

    /** This table with another name of the column for the consumer. */
    public ClaimTable withConsumerColumn(String name) {
        return new ClaimTable(
                schema, table, new Identifier(name), keyColumn, processedAtColumn, fingerprintColumn, buckets);
    }

    /** This table with another name of the column for the message's key. */
    public ClaimTable withKeyColumn(String name) {
        return new ClaimTable(
                schema, table, consumerColumn, new Identifier(name), processedAtColumn, fingerprintColumn, buckets);
    }

    /**
     * This table with a key of one column and no consumer, as many guides have it. It serves one consumer: a second one would
     * take the first one's claims for its own, and is refused where it can be seen, which is within one process.
     */
    public ClaimTable withOneColumnKey(String name) {
        return new ClaimTable(schema, table, null, new Identifier(name), processedAtColumn, fingerprintColumn, buckets);
    }

    /** This table with another name of the column for the time of the claim. */
    public ClaimTable withProcessedAtColumn(String name) {
        return new ClaimTable(
                schema, table, consumerColumn, keyColumn, new Identifier(name), fingerprintColumn, buckets);
    }

    /** This table without a column for the time of the claim. Old claims can then not be found and removed. */
    public ClaimTable withoutProcessedAt() {
        return new ClaimTable(schema, table, consumerColumn, keyColumn, null, fingerprintColumn, buckets);
    }

    /**
     * This table with a column of type bigint for the fingerprint of a message's content ({@code ConsumerBuilder.fingerprintedBy}). Claims
     * that are made without one have null. Default: none.
     */
    public ClaimTable withFingerprintColumn(String name) {
        return new ClaimTable(
                schema, table, consumerColumn, keyColumn, processedAtColumn, new Identifier(name), buckets);
    }

    /** Whether there is a column for fingerprints. */
    public boolean hasFingerprints() {
        return fingerprintColumn != null;
    }

    /**
     * This table with partitions. Its primary key has the bucket too; what makes a claim unique all the same is that each delivery of a
     * message has the same bucket. The consumer says where a message's time is ({@code ConsumerBuilder.bucketedBy}), and {@code Retention}
     * makes partitions ahead and drops old ones. Default: none.
     */
    public ClaimTable partitionedBy(Buckets dailyOrHourly) {
        return new ClaimTable(
                schema, table, consumerColumn, keyColumn, processedAtColumn, fingerprintColumn, dailyOrHourly);
    }

    /** Whether there is a column for the time of a claim. */
    public boolean hasTime() {
        return processedAtColumn != null;
    }

    /** Whether there is a column for the consumer. */
    public boolean hasConsumer() {
        return consumerColumn != null;
    }

    /** Whether it is partitioned by buckets. */
    public boolean hasBuckets() {
        return buckets != null;
    }

    /** SQL that creates the table if it is not there, without a partition; may be run again, or copied into a Flyway or Liquibase migration. */
    public String createSql() {
        return ClaimTableSql.createText(this);
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
     * Looks whether claims can be written to the table and are unique in it.
     *
     * @return what is needed for claiming; {@link UnfitTableException} with a sentence that says what to change
     */
    public Mono<CheckedClaimTable> check(Connection connection) {
        return new ClaimTableCheck(this).run(connection);
    }

    /** Whether the two may be the same table: their names are equal, and their schemas, where both have one. */
    public boolean mayBe(ClaimTable other) {
        return table.equals(other.table) && (schema == null || other.schema == null || schema.equals(other.schema));
    }

    @Nullable
    Identifier schema() {
        return schema;
    }

    Identifier table() {
        return table;
    }

    @Nullable
    Identifier consumerColumn() {
        return consumerColumn;
    }

    Identifier keyColumn() {
        return keyColumn;
    }

    @Nullable
    Identifier processedAtColumn() {
        return processedAtColumn;
    }

    @Nullable
    Identifier fingerprintColumn() {
        return fingerprintColumn;
    }

    @Nullable
    Buckets buckets() {
        return buckets;
    }

    /** The columns that must be unique together. */
    List<Identifier> keyColumns() {
        return Stream.of(consumerColumn, keyColumn, buckets == null ? null : buckets.column())
                .flatMap(Stream::ofNullable)
                .toList();
    }

    String quotedName() {
        return schema == null ? table.quoted() : schema.quoted() + "." + table.quoted();
    }

    /** The name of the table, as a person writes it. */
    @Override
    public String toString() {
        return schema == null ? table.name() : schema.name() + "." + table.name();
    }
}
