package io.onceflux.postgres;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Row;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/**
 * A unique index as the catalogue has it.
 *
 * @param columns of its key; null for an expression
 * @param whole whether it is valid, holds at once, and for every row
 * @param fuzzy whether a collation makes different texts equal
 */
record UniqueIndex(List<@Nullable String> columns, boolean whole, boolean fuzzy) {

    private static final String OF_TABLE = """
            SELECT ARRAY(SELECT a.attname::text
                         FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, n)
                         LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
                         WHERE k.n <= i.indnkeyatts) AS columns,
                   i.indisvalid AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL AS whole,
                   EXISTS (SELECT FROM unnest(i.indcollation::oid[]) AS c (oid) JOIN pg_collation p ON p.oid = c.oid
                           WHERE NOT p.collisdeterministic) AS fuzzy
            FROM pg_index i WHERE i.indrelid = $1::oid AND i.indisunique""";

    /** Those of a table. */
    static Mono<List<UniqueIndex>> of(Connection connection, Long table) {
        return Queries.rows(connection, OF_TABLE, UniqueIndex::read, table).collectList();
    }

    private static UniqueIndex read(Row row) {
        return new UniqueIndex(
                Arrays.asList(Objects.requireNonNull(row.get("columns", String[].class))),
                Objects.requireNonNull(row.get("whole", Boolean.class)),
                Objects.requireNonNull(row.get("fuzzy", Boolean.class)));
    }

    /** Throws {@link UnfitTableException} with a sentence if none of them keeps these columns, byte by byte, unique together. */
    static void require(List<UniqueIndex> indexes, List<Identifier> key, String table, String quotedTable) {
        String columns = Identifier.quotedList(key);
        if (indexes.stream().noneMatch(index -> index.isOn(key))) {
            throw new UnfitTableException(
                    ("Table %s has no unique index on exactly (%s), so the same message could be applied twice."
                                    + " Add one: CREATE UNIQUE INDEX ON %s (%s);")
                            .formatted(table, columns, quotedTable, columns));
        }
        if (indexes.stream().noneMatch(index -> index.isWholeOn(key))) {
            throw new UnfitTableException(
                    "The unique index of table %s on (%s) is partial, deferrable or invalid; it must be none of these."
                            .formatted(table, columns));
        }
        if (indexes.stream().filter(index -> index.isWholeOn(key)).allMatch(UniqueIndex::fuzzy)) {
            throw new UnfitTableException(
                    ("The unique index of table %s on (%s) has a nondeterministic collation, for which different ids are"
                                    + " equal; use COLLATE \"C\".")
                            .formatted(table, columns));
        }
    }

    boolean isWholeOn(List<Identifier> key) {
        return whole && isOn(key);
    }

    private boolean isOn(List<Identifier> key) {
        Set<String> wanted = key.stream().map(Identifier::name).collect(Collectors.toSet());
        return columns.size() == wanted.size() && wanted.containsAll(columns);
    }
}
