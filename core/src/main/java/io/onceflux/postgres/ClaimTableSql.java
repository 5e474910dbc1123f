package io.onceflux.postgres;

import java.util.stream.Collectors;

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
        return sql.append("    PRIMARY KEY (")
                .append(table.keyColumns().stream().map(Identifier::quoted).collect(Collectors.joining(", ")))
                .append(")\n);\n")
                .toString();
    }

    /**
     * One statement for any number of ids. {@code $1} is the array of ids, {@code $2} the lock timeout in milliseconds,
     * {@code $3} the consumer. The first common table expression sets the timeout before the first row is inserted.
     *
     * <p>The answer is one row, because each costs the client as much as a claim does the server: how many ids were fresh, and which; but
     * null instead of all of them.
     */
    static String claim(ClaimTable table, KeyType type) {
        return claim(table, type, "$2");
    }

    /** The same, but failing outside of a {@link MarkedTransaction}, as what stands for the timeout there is none. */
    static String claimIfMarked(ClaimTable table, KeyType type) {
        return claim(
                table,
                type,
                "CASE WHEN " + MarkedTransaction.IS_UNDER_WAY + " THEN $2 ELSE 'BEGIN did not succeed' END");
    }

    private static String claim(ClaimTable table, KeyType type, String lockTimeout) {
        Identifier consumer = table.consumerColumn();
        Identifier processedAt = table.processedAtColumn();
        String key = table.keyColumn().quoted();
        return """
                WITH bounded AS MATERIALIZED (SELECT set_config('lock_timeout', %s, true)),
                fresh AS (
                    INSERT INTO %s (%s%s%s)
                    SELECT %sCAST(ids.id AS %s)%s FROM bounded, unnest($1::text[]) AS ids (id)
                    ON CONFLICT (%s) DO NOTHING
                    RETURNING CAST(%s AS text) AS id
                )
                SELECT count(*), NULLIF(array_agg(id), $1::text[]) FROM fresh""".formatted(
                        lockTimeout,
                        table.quotedName(),
                        consumer == null ? "" : consumer.quoted() + ", ",
                        key,
                        processedAt == null ? "" : ", " + processedAt.quoted(),
                        consumer == null ? "" : "$3, ",
                        type.sqlName(),
                        processedAt == null ? "" : ", now()",
                        table.keyColumns().stream().map(Identifier::quoted).collect(Collectors.joining(", ")),
                        key);
    }
}
