package io.onceflux.postgres;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;

/** The statements that make and fill a claim table. */
final class ClaimTableSql {

    private ClaimTableSql() {}

    /** Collation "C" compares bytes: it is exact, and faster than a language's order. */
    static String createText(ClaimTable table) {
        StringBuilder sql = new StringBuilder("CREATE TABLE IF NOT EXISTS " + table.quotedName() + " (\n");
        Identifier consumer = table.consumerColumn();
        if (consumer != null) {
            sql.append("    ").append(consumer.quoted()).append(" text COLLATE \"C\" NOT NULL,\n");
        }
        sql.append("    ").append(table.keyColumn().quoted()).append(" text COLLATE \"C\" NOT NULL,\n");
        Identifier processedAt = table.processedAtColumn();
        if (processedAt != null) {
            sql.append("    ").append(processedAt.quoted()).append(" timestamptz NOT NULL DEFAULT now(),\n");
        }
        Identifier fingerprint = table.fingerprintColumn();
        if (fingerprint != null) {
            sql.append("    ").append(fingerprint.quoted()).append(" bigint,\n");
        }
        Buckets buckets = table.buckets();
        if (buckets != null) {
            sql.append("    %s %s NOT NULL,\n"
                    .formatted(buckets.column().quoted(), buckets.width().sqlType()));
        }
        return sql.append("    PRIMARY KEY (")
                .append(Identifier.quotedList(table.keyColumns()))
                .append(")\n)")
                .append(
                        buckets == null
                                ? ""
                                : " PARTITION BY RANGE (" + buckets.column().quoted() + ")")
                .append(";\n")
                .toString();
    }

    /**
     * One statement for any number of ids. {@code $1} is the array of ids, {@code $2} the lock timeout in milliseconds; then come the consumer,
     * the array of fingerprints, and that of buckets, if they have a column. The first common table expression sets the timeout before the
     * first row is inserted.
     *
     * <p>The answer is one row, because each costs the client as much as a claim does the server: how many ids were fresh, and which; but
     * null instead of all of them.
     */
    static String claim(ClaimTable table, KeyType type) {
        return claim(table, type, "$2");
    }

    /** The same, but failing outside of a {@link MarkedTransaction}, as what stands for the timeout there is none. */
    static String claimIfMarked(ClaimTable table, KeyType type) {
        return claim(table, type, MarkedTransaction.ifUnderWay("$2"));
    }

    private static String claim(ClaimTable table, KeyType type, String lockTimeout) {
        Map<Identifier, String> values = new LinkedHashMap<>();
        int parameters = 2;
        if (table.consumerColumn() != null) {
            values.put(table.consumerColumn(), "$" + ++parameters);
        }
        values.put(table.keyColumn(), "CAST(ids.id AS %s)".formatted(type.sqlName()));
        if (table.processedAtColumn() != null) {
            values.put(table.processedAtColumn(), "now()");
        }
        String arrays = "$1::text[]";
        String columns = "id";
        if (table.fingerprintColumn() != null) {
            values.put(table.fingerprintColumn(), "ids.fingerprint");
            arrays += ", $%d::bigint[]".formatted(++parameters);
            columns += ", fingerprint";
        }
        Buckets buckets = table.buckets();
        if (buckets != null) {
            values.put(
                    buckets.column(),
                    "CAST(ids.bucket AS %s)".formatted(buckets.width().sqlType()));
            arrays += ", $%d::text[]".formatted(++parameters);
            columns += ", bucket";
        }
        return """
                WITH bounded AS MATERIALIZED (SELECT set_config('lock_timeout', %s, true)),
                fresh AS (
                    INSERT INTO %s (%s)
                    SELECT %s FROM bounded, unnest(%s) AS ids (%s)
                    ON CONFLICT (%s) DO NOTHING
                    RETURNING CAST(%s AS text) AS id
                )
                SELECT count(*), NULLIF(array_agg(id), $1::text[]) FROM fresh""".formatted(
                        lockTimeout,
                        table.quotedName(),
                        Identifier.quotedList(values.keySet()),
                        String.join(", ", values.values()),
                        arrays,
                        columns,
                        Identifier.quotedList(table.keyColumns()),
                        table.keyColumn().quoted());
    }

    /**
     * The fingerprints that are kept for ids: {@code $1} the array of ids; then come the consumer, and the first and the last bucket, if they
     * have a column.
     */
    static String fingerprints(ClaimTable table, KeyType type) {
        Identifier fingerprint =
                Objects.requireNonNull(table.fingerprintColumn(), "the table has no column for fingerprints");
        StringBuilder where = new StringBuilder();
        int parameters = 1;
        if (table.consumerColumn() != null) {
            where.append("%s = $%d AND ".formatted(table.consumerColumn().quoted(), ++parameters));
        }
        Buckets buckets = table.buckets();
        if (buckets != null) {
            where.append("%s BETWEEN CAST($%d::text AS %3$s) AND CAST($%d::text AS %3$s) AND "
                    .replace("%3$s", buckets.width().sqlType())
                    .formatted(buckets.column().quoted(), parameters + 1, parameters + 2));
        }
        return """
                SELECT CAST(%s AS text), %s FROM %s
                WHERE %s%s = ANY (CAST($1::text[] AS %s[])) AND %s IS NOT NULL""".formatted(
                        table.keyColumn().quoted(),
                        fingerprint.quoted(),
                        table.quotedName(),
                        where,
                        table.keyColumn().quoted(),
                        type.sqlName(),
                        fingerprint.quoted());
    }

    /** Whether there is a claim; {@code $1} is the consumer, if it has a column. */
    static String hasAny(ClaimTable table) {
        Identifier consumer = table.consumerColumn();
        return "SELECT EXISTS (SELECT FROM %s%s)"
                .formatted(table.quotedName(), consumer == null ? "" : " WHERE " + consumer.quoted() + " = $1");
    }
}
