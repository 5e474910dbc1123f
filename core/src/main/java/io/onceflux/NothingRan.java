package io.onceflux;

import io.onceflux.AttemptConnection.NoConnectionException;
import io.onceflux.ProcessOnce.ClaimHeldException;
import io.onceflux.postgres.MissingPartitionException;

/** Failures before anything of the message has run: however often it meets them, they say nothing about it. */
final class NothingRan {

    private NothingRan() {}

    static boolean isSaidBy(Throwable error) {
        return Causes.has(error, NoConnectionException.class)
                || Causes.has(error, ClaimHeldException.class)
                || Causes.has(error, MissingPartitionException.class);
    }
}
