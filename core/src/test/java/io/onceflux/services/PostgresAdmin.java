package io.onceflux.services;

import io.r2dbc.spi.ConnectionFactories;
import io.r2dbc.spi.ConnectionFactory;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** One statement on a connection of its own, waited for: what the services need to look after a server. */
final class PostgresAdmin {
    private static final Duration LIMIT = Duration.ofSeconds(30);

    private PostgresAdmin() {}

    /** The first column of every row, as text. */
    static List<String> run(String r2dbcUrl, String sql) {
        return run(r2dbcUrl, sql, LIMIT);
    }

    static boolean answers(String r2dbcUrl) {
        try {
            return run(r2dbcUrl, "SELECT '1'", Duration.ofSeconds(2)).size() == 1;
        } catch (RuntimeException e) {
            return false;
        }
    }

    private static List<String> run(String r2dbcUrl, String sql, Duration limit) {
        ConnectionFactory server = ConnectionFactories.get(r2dbcUrl);
        return Objects.requireNonNull(Mono.usingWhen(
                        server.create(),
                        connection -> Flux.from(connection.createStatement(sql).execute())
                                .concatMap(result -> result.map(row -> text(row.get(0, String.class))))
                                .collectList(),
                        connection -> connection.close())
                .block(limit));
    }

    private static String text(@Nullable String value) {
        return value == null ? "" : value;
    }
}
