package io.onceflux.postgres;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Result;
import io.r2dbc.spi.Row;
import io.r2dbc.spi.Statement;
import java.util.function.Function;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Runs single statements on a connection. */
final class Queries {

    private Queries() {}

    static <R> Flux<R> rows(Connection connection, String sql, Function<Row, R> mapper, Object... values) {
        return Flux.defer(() -> Flux.from(bound(connection, sql, values).execute())
                .concatMap(result -> result.map((row, metadata) -> mapper.apply(row))));
    }

    static Mono<Void> execute(Connection connection, String sql, Object... values) {
        return updated(connection, sql, values).then();
    }

    /** How many rows the statement changed. */
    static Mono<Long> updated(Connection connection, String sql, Object... values) {
        return Flux.defer(() ->
                        Flux.from(bound(connection, sql, values).execute()).concatMap(Result::getRowsUpdated))
                .reduce(0L, Long::sum);
    }

    private static Statement bound(Connection connection, String sql, Object... values) {
        Statement statement = connection.createStatement(sql);
        for (int i = 0; i < values.length; i++) {
            statement.bind(i, values[i]);
        }
        return statement;
    }
}
