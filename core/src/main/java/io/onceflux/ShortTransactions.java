package io.onceflux;

import static io.onceflux.Require.given;
import static io.onceflux.Require.positive;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import java.time.Duration;
import java.util.function.Function;
import org.springframework.transaction.annotation.Isolation;
import reactor.core.publisher.Mono;

/**
 * Transactions of which each step ends within a limit, for what works beside a consumer in its database, such as a relay. A connection of
 * which it is not certain that it has nothing under way, because it was cut short or has lost its server, is closed instead of going back
 * to its pool. They join no transaction of the caller's.
 *
 * <p>Results are emitted on the driver's threads. Errors: a {@link java.util.concurrent.TimeoutException}
 * where the work takes longer than the limit; the work's own; and the database's.
 */
public final class ShortTransactions {

    private final Transactions transactions;
    private final Duration limit;

    private ShortTransactions(Transactions transactions, Duration limit) {
        this.transactions = transactions;
        this.limit = limit;
    }

    /**
     * Transactions on connections, READ COMMITTED.
     *
     * @param limit for getting a connection, for the work, and for each of BEGIN, COMMIT and ROLLBACK
     */
    public static ShortTransactions on(ConnectionFactory connections, Duration limit) {
        positive("limit", limit);
        return new ShortTransactions(
                new Transactions(given("connections", connections), Isolation.READ_COMMITTED, limit), limit);
    }

    /** Begins, runs the work, commits, and only then emits. */
    public <R> Mono<R> inTransaction(Function<Connection, Mono<R>> work) {
        return transactions
                .inTransaction(connection -> Limits.within(limit, work.apply(connection)))
                .contextWrite(CallersTransaction::without);
    }

    /** Runs the work, each statement of it in a transaction of its own. */
    public <R> Mono<R> withoutTransaction(Function<Connection, Mono<R>> work) {
        return transactions
                .withoutTransaction(connection -> Limits.within(limit, work.apply(connection)))
                .contextWrite(CallersTransaction::without);
    }
}
