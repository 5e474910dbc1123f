package io.onceflux;

import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.ConnectionFactoryMetadata;
import io.r2dbc.spi.R2dbcNonTransientResourceException;
import reactor.core.publisher.Mono;

/** A database that is away, while {@link #away} says so. */
public final class Breaker implements ConnectionFactory {

    public volatile boolean away;
    private final ConnectionPool pool;

    public Breaker(ConnectionPool pool) {
        this.pool = pool;
    }

    @Override
    public Mono<Connection> create() {
        return Mono.defer(() -> away
                ? Mono.error(new R2dbcNonTransientResourceException("connection refused", "08001"))
                : pool.create());
    }

    @Override
    public ConnectionFactoryMetadata getMetadata() {
        return pool.getMetadata();
    }
}
