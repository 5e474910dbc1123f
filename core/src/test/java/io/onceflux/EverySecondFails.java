package io.onceflux;

import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.ConnectionFactoryMetadata;
import io.r2dbc.spi.R2dbcNonTransientResourceException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import reactor.core.publisher.Mono;

/** Connections through a balancer of which one of two servers is dead, once it is broken. */
final class EverySecondFails implements ConnectionFactory {

    final AtomicBoolean broken = new AtomicBoolean();
    private final AtomicInteger asked = new AtomicInteger();
    private final ConnectionPool pool;

    EverySecondFails(ConnectionPool pool) {
        this.pool = pool;
    }

    @Override
    public Mono<Connection> create() {
        return Mono.defer(() -> broken.get() && asked.getAndIncrement() % 2 == 0
                ? Mono.error(new R2dbcNonTransientResourceException("connection refused", "08001"))
                : pool.create());
    }

    @Override
    public ConnectionFactoryMetadata getMetadata() {
        return pool.getMetadata();
    }
}
