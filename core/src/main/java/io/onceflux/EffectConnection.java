package io.onceflux;

import io.r2dbc.spi.Batch;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.ConnectionFactoryMetadata;
import io.r2dbc.spi.Statement;
import io.r2dbc.spi.ValidationDepth;
import java.util.function.Supplier;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * The transaction's connection as one effect sees it: once the effect has ended every use of it fails, also of statements that were made
 * before, so that none can stray into another message's part of the transaction.
 */
final class EffectConnection extends TransactionView {

    /** @param name of the effect, for an error */
    EffectConnection(Connection transaction, Supplier<String> name) {
        super(transaction, name);
    }

    /** A factory that has no other connection. */
    ConnectionFactory asFactory() {
        return new OnlyThis(this);
    }

    @Override
    public Statement createStatement(String sql) {
        return guard(super.createStatement(sql));
    }

    @Override
    public Batch createBatch() {
        return new InterceptedBatch(super.createBatch(), sql -> {}, execution -> whileActive(() -> execution));
    }

    /** The statement, which does not run once the effect has ended. */
    Statement guard(Statement statement) {
        return new InterceptedStatement(statement, (execution, several) -> whileActive(() -> execution));
    }

    private <V> Publisher<V> whileActive(Supplier<? extends Publisher<? extends V>> call) {
        return Flux.defer(() -> {
            requireActive();
            return Flux.<V>from(call.get());
        });
    }

    @Override
    public Publisher<Void> createSavepoint(String savepoint) {
        return whileActive(() -> delegate.createSavepoint(savepoint));
    }

    @Override
    public Publisher<Void> releaseSavepoint(String savepoint) {
        return whileActive(() -> delegate.releaseSavepoint(savepoint));
    }

    @Override
    public Publisher<Void> rollbackTransactionToSavepoint(String savepoint) {
        return whileActive(() -> delegate.rollbackTransactionToSavepoint(savepoint));
    }

    @Override
    public Publisher<Boolean> validate(ValidationDepth depth) {
        return whileActive(() -> delegate.validate(depth));
    }

    /** A factory of one connection. */
    private record OnlyThis(EffectConnection connection) implements ConnectionFactory {

        @Override
        public Publisher<? extends Connection> create() {
            return Mono.fromCallable(() -> {
                connection.requireActive();
                return connection;
            });
        }

        @Override
        public ConnectionFactoryMetadata getMetadata() {
            return () -> "PostgreSQL";
        }
    }
}
