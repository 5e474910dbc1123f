package io.onceflux.testkit;

import io.onceflux.Claims;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.ConnectionFactoryMetadata;
import reactor.core.publisher.Mono;

/**
 * Transactions and claims in the memory of a test, for effects that need no SQL: what a consumer does with outcomes, failures, its source.
 * Claims keep the same contract as those in PostgreSQL ({@link ClaimsContract}): they become final with the commit of their
 * transaction, and whoever wants one that is under way waits for it.
 *
 * <pre>{@code
 * InMemoryDatabase database = InMemoryDatabase.empty();
 * IdempotentConsumer<Order> consumer = IdempotentConsumer.<Order>named("loyalty")
 *         .identifiedBy(Order::number)
 *         .claims(database.claims())
 *         .effect((order, db) -> mailer.send(order))
 *         .build(database);
 * }</pre>
 *
 * <p>There are as many connections as are asked for. A statement that an effect sends is refused: whether <em>that</em> is once only PostgreSQL can
 * show. Nothing blocks, and everything happens on the thread that asks, or on that of the transaction that was waited for.
 */
public final class InMemoryDatabase implements ConnectionFactory {

    private final InMemoryClaims claims = new InMemoryClaims();

    private InMemoryDatabase() {}

    /** An empty one. */
    public static InMemoryDatabase empty() {
        return new InMemoryDatabase();
    }

    /** Its claims, for {@link io.onceflux.ConsumerBuilder#claims}. They keep fingerprints, and are of any number of consumers. */
    public Claims claims() {
        return claims;
    }

    @Override
    public Mono<Connection> create() {
        return Mono.fromSupplier(InMemoryConnection::new);
    }

    @Override
    public ConnectionFactoryMetadata getMetadata() {
        return () -> "OnceFlux in memory";
    }
}
