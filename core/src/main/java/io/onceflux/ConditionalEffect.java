package io.onceflux;

import org.reactivestreams.Publisher;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * What a message does in the database, where the statement itself decides whether it happens: by the effect's own unique constraint, by
 * a condition on the state, or by a version. There is no claim; that no row was affected says that nothing happened.
 *
 * <pre>{@code
 * // a natural key: the ledger has one entry for an order, for ever
 * INSERT INTO point_ledger (order_id, ...) VALUES (...) ON CONFLICT (order_id) DO NOTHING
 * // a conditional write: only a paid order is shipped
 * UPDATE orders SET state = 'shipped' WHERE order_id = ... AND state = 'paid'
 * // a version guard: see io.onceflux.postgres.VersionGuard
 * }</pre>
 *
 * @param <T> the payload
 */
@FunctionalInterface
public interface ConditionalEffect<T> {

    /**
     * Makes the statement that decides. What else the message does is part of it (a common table expression), or comes after it, with
     * {@link #then}. Where no row was affected, everything that was written for the message is undone, but for what triggers have: if it was
     * more than one plain INSERT, UPDATE, DELETE or MERGE, the effect runs once more for that, behind a savepoint.
     *
     * <p>Everything that {@link Effect#apply} says of the thread, the session and the client holds here too; but a duplicate calls it
     * again.
     *
     * @param payload the message
     * @param db a client over the transaction's own connection
     * @return how many rows were affected, one number; such as {@code fetch().rowsUpdated()}. None, or several, are an error of the effect.
     *     It is subscribed once and runs to its end. An error rolls everything back.
     */
    Publisher<? extends Number> apply(T payload, DatabaseClient db);

    /** This one, and where it affects a row the rest of what the message does, in the same transaction. */
    default ConditionalEffect<T> then(Effect<? super T> rest) {
        return (payload, db) -> Flux.from(apply(payload, db))
                .concatMap(rows -> rows.longValue() > 0
                        ? Flux.from(rest.apply(payload, db)).then(Mono.<Number>just(rows))
                        : Mono.<Number>just(rows));
    }
}
