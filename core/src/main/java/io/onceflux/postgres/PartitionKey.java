package io.onceflux.postgres;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Row;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/**
 * By what a table is partitioned that was described without buckets.
 *
 * @param byRange whether by ranges
 * @param columns null for an expression
 * @param type of the first column; empty for an expression
 */
record PartitionKey(boolean byRange, List<@Nullable String> columns, String type) {

    /** Of a table that has no partitions, or those that were described. */
    static final PartitionKey NONE = new PartitionKey(false, List.of(), "");

    private static final String OF_TABLE = """
            SELECT p.partstrat = 'r' AS by_range,
                   ARRAY(SELECT a.attname::text FROM unnest(p.partattrs::int2[]) WITH ORDINALITY AS k (attnum, n)
                         LEFT JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = k.attnum AND a.attnum > 0
                         ORDER BY k.n) AS columns,
                   COALESCE((SELECT a.atttypid::regtype::text FROM pg_attribute a
                             WHERE a.attrelid = p.partrelid AND a.attnum = p.partattrs[0] AND a.attnum > 0), '') AS type
            FROM pg_partitioned_table p WHERE p.partrelid = $1::oid""";

    static Mono<PartitionKey> of(Connection connection, Long table) {
        return Queries.rows(connection, OF_TABLE, PartitionKey::read, table).next();
    }

    private static PartitionKey read(Row row) {
        return new PartitionKey(
                Objects.requireNonNull(row.get("by_range", Boolean.class)),
                Arrays.asList(Objects.requireNonNull(row.get("columns", String[].class))),
                Objects.requireNonNull(row.get("type", String.class)));
    }

    /**
     * Throws {@link UnfitTableException} if the key of a claim has not all of it: then PostgreSQL takes no unique index on the key, and to ask for
     * one would lead nowhere.
     */
    void requireInKey(ClaimTable table) {
        Set<@Nullable String> foreign = new HashSet<>(columns);
        foreign.removeAll(table.keyColumns().stream().map(Identifier::name).collect(Collectors.toSet()));
        if (!foreign.isEmpty()) {
            throw new UnfitTableException("Table %s is partitioned by %s, which its ClaimTable does not say. %s"
                    .formatted(table, words(), mend(table)));
        }
    }

    private String words() {
        return columns.contains(null)
                ? "an expression"
                : (columns.size() == 1 ? "column " : "columns ") + String.join(", ", columns);
    }

    private String mend(ClaimTable table) {
        String buckets = buckets();
        String column = columns.get(0);
        Identifier processedAt = table.processedAtColumn();
        boolean isTimeOfClaim = processedAt != null && processedAt.name().equals(column);
        return buckets == null || isTimeOfClaim
                ? ("PostgreSQL takes no unique index on (%s) alone there. Claims need a table that is partitioned by a time of the message"
                                + " (ClaimTable.partitionedBy), or not at all.")
                        .formatted(Identifier.quotedList(table.keyColumns()))
                : "Use ClaimTable.partitionedBy(%s%s)."
                        .formatted(
                                buckets,
                                Buckets.daily().column().name().equals(column)
                                        ? ""
                                        : ".inColumn(\"%s\")".formatted(column));
    }

    private @Nullable String buckets() {
        if (!byRange || columns.size() > 1) {
            return null;
        }
        return switch (type) {
            case "date" -> "Buckets.daily()";
            case "timestamp with time zone" -> "Buckets.hourly()";
            default -> null;
        };
    }
}
