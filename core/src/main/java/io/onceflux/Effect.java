package io.onceflux;

import org.reactivestreams.Publisher;
import org.springframework.r2dbc.core.DatabaseClient;

/**
 * What a message does in the database, once.
 *
 * @param <T> the payload
 */
@FunctionalInterface
public interface Effect<T> {

    /**
     * Makes the statements of one message. They run in the transaction of the message's claim, and commit with it or not at
     * all.
     *
     * <p>It is called at most once an attempt, only after the claim, on the thread that brought the claim's answer (a driver's
     * event loop): it must not block. It may be called again for the same message after a rollback, so it must do nothing
     * outside the database that may not happen twice.
     *
     * <p>It must not change the session ({@code SET} without {@code LOCAL}): that stays on the pooled connection. With
     * {@link ConsumerBuilder#maxBatch} above 1 it must not change the transaction either ({@code SET LOCAL}, {@code SET TRANSACTION},
     * {@code set_config(..., true)}) in a way that the next messages must not see: they share it.
     *
     * <p>That a Spring transaction which joins this one is marked rollback-only is not seen; signal an error instead. One that does not
     * join, such as with {@code PROPAGATION_REQUIRES_NEW}, commits on its own, outside of this one: once an attempt, not once.
     *
     * @param payload the message
     * @param db a client over the transaction's own connection. It works without the Reactor context, cannot commit or roll
     *     back, and fails when it is used after the effect has ended. Spring's {@code ConnectionFactoryUtils}, and what
     *     builds on it, joins the same transaction through the Reactor context; nor can that begin, commit or roll back.
     * @return the work; it is subscribed once and runs to its end, whatever it emits. An error rolls everything back.
     */
    Publisher<?> apply(T payload, DatabaseClient db);
}
