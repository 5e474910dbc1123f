package io.onceflux.postgres;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.R2dbcException;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.function.Function;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * What the role of a connection needs to be allowed on a table, for some work.
 *
 * @param table quoted
 * @param work what it is for: "may not ..."
 * @param needed such as SELECT. One that is given for some columns counts as given: whether they are enough, the statement finds out
 * @param createSql makes the table
 */
record TableRights(String table, String work, List<String> needed, String createSql) {

    /** insufficient_privilege, undefined_table */
    private static final Set<String> REFUSED = Set.of("42501", "42P01");

    private static final String MISSING = """
            SELECT current_user::text AS role, ARRAY(
                SELECT needed FROM unnest($2::text[]) WITH ORDINALITY AS asked (needed, nth)
                WHERE NOT CASE needed WHEN 'DELETE' THEN has_table_privilege(c.oid, needed)
                    ELSE has_any_column_privilege(c.oid, needed) END
                ORDER BY nth) AS missing
            FROM pg_class c WHERE c.oid = to_regclass($1)""";

    private record Missing(String role, List<String> rights) {}

    /** {@link UnfitTableException} that names what is missing: the table, or rights on it. */
    Mono<Void> require(Connection connection) {
        return Queries.rows(
                        connection,
                        MISSING,
                        row -> new Missing(
                                Objects.requireNonNull(row.get("role", String.class)),
                                List.of(Objects.requireNonNull(row.get("missing", String[].class)))),
                        table,
                        needed.toArray(String[]::new))
                .next()
                .switchIfEmpty(Mono.error(() -> UnfitTableException.missing(table, createSql)))
                .doOnNext(missing -> {
                    if (!missing.rights.isEmpty()) {
                        throw new UnfitTableException("Role %s may not %s. Allow it: GRANT %s ON %s TO %s;"
                                .formatted(
                                        missing.role,
                                        work,
                                        String.join(", ", missing.rights),
                                        table,
                                        new Identifier(missing.role).quoted()));
                    }
                })
                .then();
    }

    /** Says what is missing where a statement was refused for that, and otherwise what it failed with. Behind the statement, outside of a transaction. */
    static <R> Function<Throwable, Mono<R>> explaining(Connection connection, TableRights... tables) {
        return error ->
                error instanceof R2dbcException refused && REFUSED.contains(String.valueOf(refused.getSqlState()))
                        ? Flux.fromArray(tables)
                                .concatMap(table -> table.require(connection))
                                .then(Mono.error(error))
                        : Mono.error(error);
    }
}
