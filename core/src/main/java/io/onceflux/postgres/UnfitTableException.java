package io.onceflux.postgres;

/** A claim table, or its server, cannot be used; the message says what to change. */
public final class UnfitTableException extends RuntimeException {

    UnfitTableException(String sentence) {
        super(sentence);
    }

    /**
     * There is no such table.
     *
     * @param table as a person writes it
     * @param createSql makes it
     */
    static UnfitTableException missing(Object table, String createSql) {
        return new UnfitTableException(
                "Table %s does not exist in this database, or is not in the search path. Create it: %s"
                        .formatted(table, createSql.strip().replaceAll("\\s+", " ")));
    }

    /** @param consequence what a crash of PostgreSQL leads to: "... empties it, and ..." */
    static UnfitTableException unlogged(Object table, String quotedName, String consequence) {
        return new UnfitTableException(
                "Table %s is UNLOGGED: a crash of PostgreSQL empties it, and %s. Make it permanent: ALTER TABLE %s SET LOGGED;"
                        .formatted(table, consequence, quotedName));
    }
}
