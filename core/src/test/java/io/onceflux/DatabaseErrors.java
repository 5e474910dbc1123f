package io.onceflux;

import io.r2dbc.spi.R2dbcException;
import org.jspecify.annotations.Nullable;

/** Errors as a driver raises them, for tests that need no database. */
final class DatabaseErrors {

    private DatabaseErrors() {}

    static R2dbcException withState(@Nullable String sqlState) {
        return new R2dbcException("reason", sqlState, 0) {};
    }

    /** As deep as Spring wraps it. */
    static Throwable wrapped(String sqlState) {
        return new RuntimeException("outer", new IllegalStateException("inner", withState(sqlState)));
    }

    /** Named like the driver's, which is not public. */
    static final class RequestQueueException extends R2dbcException {
        RequestQueueException() {
            super("Cannot exchange messages because the request queue limit is exceeded", "08006", 0);
        }
    }
}
