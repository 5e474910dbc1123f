package io.onceflux.postgres;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

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
        return sql.append("    PRIMARY KEY (")
                .append(Identifier.quotedList(table.keyColumns()))
                .append(")\n);\n")
                .toString();
    }

    /**
     * One statement for any number of ids. {@code $1} is the array of ids, {@code $2} the lock timeout in milliseconds,
     * {@code $3} the consumer, if it has a column; the next one the array of fingerprints, if they are claimed with. The first common table
     * expression sets the timeout before the first row is inserted.
     *
     * <p>The answer is one row, because each costs the client as much as a claim does the server: how many ids were fresh, and which; but
     * null instead of all of them.
     */
    static String claim(ClaimTable table, KeyType type, boolean withFingerprints) {
        return claim(table, type, withFingerprints, "$2");
    }

    /** The same, but failing outside of a {@link MarkedTransaction}, as what stands for the timeout there is none. */
    static String claimIfMarked(ClaimTable table, KeyType type, boolean withFingerprints) {
        return claim(table, type, withFingerprints, MarkedTransaction.ifUnderWay("$2"));
    }

    private static String claim(ClaimTable table, KeyType type, boolean withFingerprints, String lockTimeout) {
        Map<Identifier, String> values = new LinkedHashMap<>();
        put(values, table.consumerColumn(), "$3");
        put(values, table.keyColumn(), "CAST(ids.id AS %s)".formatted(type.sqlName()));
        put(values, table.processedAtColumn(), "now()");
        String ids = "unnest($1::text[]) AS ids (id)";
        if (withFingerprints) {
            put(values, table.fingerprintColumn(), "ids.fingerprint");
            ids = "unnest($1::text[], $%d::bigint[]) AS ids (id, fingerprint)"
                    .formatted(table.consumerColumn() == null ? 3 : 4);
        }
        return """
                WITH bounded AS MATERIALIZED (SELECT set_config('lock_timeout', %s, true)),
                fresh AS (
                    INSERT INTO %s (%s)
                    SELECT %s FROM bounded, %s
                    ON CONFLICT (%s) DO NOTHING
                    RETURNING CAST(%s AS text) AS id
                )
                SELECT count(*), NULLIF(array_agg(id), $1::text[]) FROM fresh""".formatted(
                        lockTimeout,
                        table.quotedName(),
                        Identifier.quotedList(values.keySet()),
                        String.join(", ", values.values()),
                        ids,
                        Identifier.quotedList(table.keyColumns()),
                        table.keyColumn().quoted());
    }

    private static void put(Map<Identifier, String> values, @Nullable Identifier column, String value) {
        if (column != null) {
            values.put(column, value);
        }
    }

    /** The fingerprints that are kept for ids: {@code $1} the array of ids, {@code $2} the consumer. */
    static String fingerprints(ClaimTable table, KeyType type) {
        Identifier consumer = table.consumerColumn();
        return """
                SELECT CAST(%s AS text), %s FROM %s
                WHERE %s%s = ANY (CAST($1::text[] AS %s[])) AND %s IS NOT NULL""".formatted(
                        table.keyColumn().quoted(),
                        required(table.fingerprintColumn()).quoted(),
                        table.quotedName(),
                        consumer == null ? "" : consumer.quoted() + " = $2 AND ",
                        table.keyColumn().quoted(),
                        type.sqlName(),
                        required(table.fingerprintColumn()).quoted());
    }

    /** Whether there is a claim; {@code $1} is the consumer, if it has a column. */
    static String hasAny(ClaimTable table) {
        Identifier consumer = table.consumerColumn();
        return "SELECT EXISTS (SELECT FROM %s%s)"
                .formatted(table.quotedName(), consumer == null ? "" : " WHERE " + consumer.quoted() + " = $1");
    }

    private static Identifier required(@Nullable Identifier column) {
        return Objects.requireNonNull(column, "the table has no column for fingerprints");
    }
}
