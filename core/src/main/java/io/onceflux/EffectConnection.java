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
 * The transaction's connection as one effect sees it: once the effect has ended every use of it fails, so that no statement can
 * stray into another message's part of the transaction.
 */
final class EffectConnection extends TransactionView {

    private final Supplier<String> name;
    private volatile boolean ended;

    /** @param name of the effect, for an error */
    EffectConnection(Connection transaction, Supplier<String> name) {
        super(transaction);
        this.name = name;
    }

    void end() {
        ended = true;
    }

    /** A factory that has no other connection. */
    ConnectionFactory asFactory() {
        return new OnlyThis(this);
    }

    private IllegalStateException afterEnd() {
        return new IllegalStateException(
                name.get()
                        + " has ended: its DatabaseClient may be used only by what the effect returns, and until that completes");
    }

    /** Throws if the effect has ended. */
    void requireActive() {
        if (ended) {
            throw afterEnd();
        }
    }

    @Override
    public Statement createStatement(String sql) {
        requireActive();
        return guard(delegate.createStatement(sql));
    }

    @Override
    public Batch createBatch() {
        requireActive();
        return new InterceptedBatch(delegate.createBatch(), sql -> {}, execution -> whileActive(() -> execution));
    }

    /** The statement, which does not run once the effect has ended. */
    Statement guard(Statement statement) {
        return new InterceptedStatement(statement, (execution, several) -> whileActive(() -> execution));
    }

    private <V> Publisher<V> whileActive(Supplier<? extends Publisher<? extends V>> call) {
        return Flux.defer(() -> ended ? Mono.error(afterEnd()) : Flux.<V>from(call.get()));
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
