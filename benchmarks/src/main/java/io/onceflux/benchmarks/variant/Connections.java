package io.onceflux.benchmarks.variant;

import io.onceflux.benchmarks.scenario.Site;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.pool.ConnectionPoolConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionFactoryProvider;
import io.r2dbc.spi.ConnectionFactories;
import io.r2dbc.spi.ConnectionFactoryOptions;

/** The pool that a reactive service has: a connection a lane, and one to probe with. */
final class Connections {

    private Connections() {}

    static ConnectionPool pool(Site site, int lanes) {
        ConnectionFactoryOptions options = ConnectionFactoryOptions.parse(site.r2dbcUrl())
                .mutate()
                .option(PostgresqlConnectionFactoryProvider.TCP_NODELAY, true)
                .build();
        return new ConnectionPool(ConnectionPoolConfiguration.builder(ConnectionFactories.get(options))
                .initialSize(lanes)
                .maxSize(lanes + 1)
                .build());
    }
}
