package io.onceflux;

import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.pool.PoolMetrics;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.Wrapped;
import java.util.OptionalInt;
import org.springframework.util.ClassUtils;

/** How many connections a pool can open, where the factory is one of r2dbc-pool. */
final class PoolSize {

    private static final boolean POOL_PRESENT =
            ClassUtils.isPresent("io.r2dbc.pool.ConnectionPool", PoolSize.class.getClassLoader());

    private PoolSize() {}

    static OptionalInt of(ConnectionFactory connections) {
        ConnectionFactory at = connections;
        while (POOL_PRESENT) {
            OptionalInt size = R2dbcPool.sizeOf(at);
            if (size.isPresent()) {
                return size;
            }
            if (at instanceof Wrapped<?> wrapped && wrapped.unwrap() instanceof ConnectionFactory inner) {
                at = inner;
            } else {
                break;
            }
        }
        return OptionalInt.empty();
    }

    /** Loaded only where r2dbc-pool is on the class path. */
    private static final class R2dbcPool {
        static OptionalInt sizeOf(ConnectionFactory connections) {
            return connections instanceof ConnectionPool pool
                    ? pool.getMetrics()
                            .map(PoolMetrics::getMaxAllocatedSize)
                            .map(OptionalInt::of)
                            .orElseGet(OptionalInt::empty)
                    : OptionalInt.empty();
        }
    }
}
