package io.onceflux.testkit;

import io.r2dbc.spi.Connection;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.TreeSet;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** What is in the tables of a database: how many rows, and a sum that changes with them. */
record Tables(Map<String, Content> contents) {

    private static final String NAMES = """
            SELECT format('%I.%I', n.nspname, c.relname) AS name
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE c.relkind = 'r' AND c.relpersistence <> 't' AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'
            ORDER BY 1""";

    record Content(long rows, String sum) {}

    static Mono<Tables> of(Connection connection) {
        return Flux.from(connection.createStatement(NAMES).execute())
                .concatMap(result -> result.map((row, metadata) -> Objects.requireNonNull(row.get(0, String.class))))
                .collectList()
                .flatMapIterable(names -> names)
                .concatMap(name -> content(connection, name).map(content -> Map.entry(name, content)))
                .collectMap(Map.Entry::getKey, Map.Entry::getValue, TreeMap::new)
                .map(Tables::new);
    }

    /** @param name quoted where it has to be */
    private static Mono<Content> content(Connection connection, String name) {
        String sql =
                "SELECT count(*), COALESCE(sum(hashtextextended(t::text, 0)), 0)::text FROM ONLY " + name + " AS t";
        return Flux.from(connection.createStatement(sql).execute())
                .concatMap(result -> result.map((row, metadata) -> new Content(
                        Objects.requireNonNull(row.get(0, Long.class)),
                        Objects.requireNonNull(row.get(1, String.class)))))
                .single();
    }

    /** For a person: which tables differ, and how. */
    List<String> differencesTo(Tables before) {
        TreeSet<String> names = new TreeSet<>(contents.keySet());
        names.addAll(before.contents.keySet());
        List<String> differences = new ArrayList<>();
        for (String name : names) {
            Content was = before.contents.get(name);
            Content is = contents.get(name);
            if (was == null || is == null) {
                differences.add("table " + name + (was == null ? " is new" : " is gone"));
            } else if (was.rows() != is.rows()) {
                differences.add("table %s has %d rows instead of %d".formatted(name, is.rows(), was.rows()));
            } else if (!was.equals(is)) {
                differences.add("table %s has other content".formatted(name));
            }
        }
        return differences;
    }
}
