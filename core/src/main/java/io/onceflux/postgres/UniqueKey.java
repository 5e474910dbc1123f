package io.onceflux.postgres;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Row;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/**
 * The unique constraint of a table of the user's that makes an effect happen once: a natural key. Immutable.
 *
 * <p>Names are taken literally, with their case.
 */
public final class UniqueKey {

    private static final String TABLE = """
            SELECT c.oid::bigint AS oid, c.relpersistence::text AS persistence,
                   ARRAY(SELECT attname::text FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped
                         AND NOT attnotnull) AS nullable,
                   ARRAY(SELECT tgname::text FROM pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal AND tgenabled <> 'D'
                         AND tgtype & 7 = 7 ORDER BY tgname) AS before_insert
            FROM pg_class c WHERE c.oid = to_regclass($1)""";

    private final @Nullable Identifier schema;
    private final Identifier table;
    private final List<Identifier> columns;

    private UniqueKey(@Nullable Identifier schema, Identifier table, List<Identifier> columns) {
        this.schema = schema;
        this.table = table;
        this.columns = columns;
    }

    /**
     * The key of a table.
     *
     * @param table its name; the connection's search path finds it
     * @param columns that are unique together, as {@code ON CONFLICT} names them; in any order
     */
    public static UniqueKey of(String table, String... columns) {
        if (columns.length == 0) {
            throw new IllegalArgumentException("a unique key has at least one column");
        }
        return new UniqueKey(
                null,
                new Identifier(table),
                Arrays.stream(columns).map(Identifier::new).toList());
    }

    /** This key of a table in a schema. */
    public UniqueKey inSchema(String name) {
        return new UniqueKey(new Identifier(name), table, columns);
    }

    /**
     * Looks whether the table is there, survives a crash, and keeps these columns unique: by an index that is valid, not partial and not
     * deferrable, with no column that may be null, as nulls do not equal each other.
     *
     * @return a sentence for everything that works but may not be what is wanted; {@link UnfitTableException} with a sentence that says what
     *     to change, or the database's own error
     */
    public Mono<List<String>> check(Connection connection) {
        return Queries.rows(connection, TABLE, Found::read, quotedName())
                .next()
                .switchIfEmpty(Mono.error(() -> new UnfitTableException(
                        "Table %s does not exist in this database, or is not in the search path.".formatted(this))))
                .flatMap(found -> UniqueIndex.of(connection, found.oid)
                        .doOnNext(indexes -> requireFit(found, indexes))
                        .map(indexes -> warnings(found)));
    }

    /** As a table that is partitioned by hand has them. */
    private List<String> warnings(Found found) {
        return found.beforeInsert.isEmpty()
                ? List.of()
                : List.of(
                        ("table %s has triggers before each INSERT (%s): where one of them takes the row away, no row is affected, and the"
                                        + " message passes for one that was there before")
                                .formatted(this, String.join(", ", found.beforeInsert)));
    }

    private void requireFit(Found found, List<UniqueIndex> indexes) {
        if (found.persistence.equals("u")) {
            throw UnfitTableException.unlogged(this, quotedName(), "every message could be applied again");
        }
        UniqueIndex.require(indexes, columns, toString(), quotedName());
        for (Identifier column : columns) {
            if (found.nullable.contains(column.name())) {
                throw new UnfitTableException(
                        ("Column %s of table %s may be null, and nulls do not equal each other, so the same message could be"
                                        + " applied twice. Forbid it: ALTER TABLE %s ALTER COLUMN %s SET NOT NULL;")
                                .formatted(column, this, quotedName(), column.quoted()));
            }
        }
    }

    private String quotedName() {
        return schema == null ? table.quoted() : schema.quoted() + "." + table.quoted();
    }

    /** The name of the table, as a person writes it. */
    @Override
    public String toString() {
        return schema == null ? table.name() : schema.name() + "." + table.name();
    }

    private record Found(Long oid, String persistence, List<String> nullable, List<String> beforeInsert) {
        static Found read(Row row) {
            return new Found(
                    Objects.requireNonNull(row.get("oid", Long.class)),
                    Objects.requireNonNull(row.get("persistence", String.class)),
                    List.of(Objects.requireNonNull(row.get("nullable", String[].class))),
                    List.of(Objects.requireNonNull(row.get("before_insert", String[].class))));
        }
    }
}
