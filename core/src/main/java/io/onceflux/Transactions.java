package io.onceflux;

import io.onceflux.AttemptConnection.NoConnectionException;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.ConnectionFactoryMetadata;
import io.r2dbc.spi.IsolationLevel;
import java.time.Duration;
import java.util.function.BiFunction;
import java.util.function.Function;
import org.springframework.core.InfrastructureProxy;
import org.springframework.r2dbc.connection.ConnectionFactoryUtils;
import org.springframework.r2dbc.connection.R2dbcTransactionManager;
import org.springframework.transaction.annotation.Isolation;
import org.springframework.transaction.reactive.TransactionalOperator;
import org.springframework.transaction.support.DefaultTransactionDefinition;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Runs work in a transaction of its own, under Spring's {@link TransactionalOperator}, on an {@link AttemptConnection}.
 *
 * <p>What joins Spring's reactive transaction through the user's {@link ConnectionFactory} (repositories,
 * {@code ConnectionFactoryUtils}) runs in the same transaction.
 */
final class Transactions {

    private final AttemptConnections connections;
    private final TransactionalOperator operator;

    Transactions(ConnectionFactory userConnections, Isolation isolation, Duration controlLimit) {
        this.connections = new AttemptConnections(userConnections, controlLimit);
        DefaultTransactionDefinition definition = new DefaultTransactionDefinition();
        definition.setIsolationLevel(isolation.value());
        this.operator = TransactionalOperator.create(
                new EnsuredEnd(new R2dbcTransactionManager(connections), connections, controlLimit), definition);
    }

    /**
     * Begins, runs the work on the transaction's connection, commits, and only then emits. An error of the work is emitted
     * once the rollback is confirmed or the connection closed.
     */
    <R> Mono<R> inTransaction(Function<AttemptConnection, Mono<R>> work) {
        return handingOver(handover -> operator.transactional(onConnection(handover, work)));
    }

    /** Begins, runs the work and rolls back whatever it did. */
    Mono<Void> inRolledBackTransaction(Function<Connection, Mono<Void>> work) {
        return handingOver(handover -> operator.execute(transaction -> {
                    transaction.setRollbackOnly();
                    return onConnection(handover, work);
                })
                .then());
    }

    private <R> Mono<R> handingOver(Function<Handover, Mono<R>> transaction) {
        return Mono.usingWhen(
                Mono.fromSupplier(Handover::new),
                handover -> transaction.apply(handover).contextWrite(context -> context.put(Handover.class, handover)),
                handover -> Mono.empty(),
                (handover, error) -> Mono.empty(),
                Handover::abandon);
    }

    private <R> Mono<R> onConnection(Handover handover, Function<? super AttemptConnection, Mono<R>> work) {
        return ConnectionFactoryUtils.getConnection(connections)
                .cast(AttemptConnection.class)
                .doOnNext(handover::complete)
                .flatMap(connection -> connection.runWork(work));
    }

    /**
     * Runs the work on a connection, each statement for itself. Work that is cut short gives it back closed: the driver may have
     * sent one half of a statement, and the server then keeps a transaction open for the other.
     */
    <R> Mono<R> withoutTransaction(Function<Connection, Mono<R>> work) {
        return Mono.usingWhen(
                connections.create(),
                work,
                AttemptConnection::close,
                (connection, error) -> connection.abandon(),
                AttemptConnection::abandon);
    }

    /**
     * Begins with READ COMMITTED, runs the work, and rolls back whatever it did: for what a transaction has, such as a lock, and not for what it
     * writes.
     *
     * @param work given the connection, and the limit for each of its steps
     */
    <R> Flux<R> inOpenTransaction(BiFunction<Connection, Duration, Flux<R>> work) {
        return Flux.usingWhen(
                connections.create(),
                connection -> connection
                        .beginTransaction(IsolationLevel.READ_COMMITTED)
                        .thenMany(Flux.defer(() -> work.apply(connection, connections.controlLimit()))),
                AttemptConnection::end,
                (connection, error) -> connection.abandon(),
                AttemptConnection::abandon);
    }

    /** The user's connections as attempts use them; to Spring it is the same resource as the user's own factory. */
    private record AttemptConnections(ConnectionFactory users, Duration controlLimit)
            implements ConnectionFactory, InfrastructureProxy {

        @Override
        public Mono<AttemptConnection> create() {
            return Mono.deferContextual(context -> {
                Mono<AttemptConnection> connection = Limits.within(controlLimit, Mono.<Connection>from(users.create()))
                        .onErrorMap(NoConnectionException::new)
                        .map(pooled -> new AttemptConnection(pooled, controlLimit));
                return context.hasKey(Handover.class)
                        ? context.<Handover>get(Handover.class).take(connection)
                        : connection;
            });
        }

        @Override
        public ConnectionFactoryMetadata getMetadata() {
            return users.getMetadata();
        }

        @Override
        public Object getWrappedObject() {
            return users;
        }
    }
}
