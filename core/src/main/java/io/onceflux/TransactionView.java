package io.onceflux;

import io.r2dbc.spi.Batch;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.IsolationLevel;
import io.r2dbc.spi.Statement;
import io.r2dbc.spi.TransactionDefinition;
import java.time.Duration;
import java.util.function.Supplier;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Mono;

/**
 * The transaction's connection as what runs in it sees it: it cannot end the transaction, closing it does nothing, and once that has ended
 * it makes no statements.
 */
class TransactionView extends DelegatingConnection {

    private final Supplier<String> user;
    private volatile boolean ended;

    /** @param user who is given it, for an error */
    TransactionView(Connection transaction, Supplier<String> user) {
        super(transaction);
        this.user = user;
    }

    final void end() {
        ended = true;
    }

    /** Throws if its user has ended. */
    final void requireActive() {
        if (ended) {
            throw new IllegalStateException(
                    user.get()
                            + " has ended: its DatabaseClient may be used only by what the effect returns, and until that completes");
        }
    }

    @Override
    public Statement createStatement(String sql) {
        requireActive();
        return delegate.createStatement(sql);
    }

    @Override
    public Batch createBatch() {
        requireActive();
        return delegate.createBatch();
    }

    private static <R> Publisher<R> refuse(String call) {
        return Mono.error(
                new UnsupportedOperationException("an effect cannot call " + call + ": the transaction is OnceFlux's"));
    }

    @Override
    public Publisher<Void> close() {
        return Mono.empty();
    }

    @Override
    public Publisher<Void> beginTransaction() {
        return refuse("beginTransaction");
    }

    @Override
    public Publisher<Void> beginTransaction(TransactionDefinition definition) {
        return refuse("beginTransaction");
    }

    @Override
    public Publisher<Void> commitTransaction() {
        return refuse("commitTransaction");
    }

    @Override
    public Publisher<Void> rollbackTransaction() {
        return refuse("rollbackTransaction");
    }

    @Override
    public Publisher<Void> setAutoCommit(boolean autoCommit) {
        return refuse("setAutoCommit");
    }

    @Override
    public Publisher<Void> setTransactionIsolationLevel(IsolationLevel level) {
        return refuse("setTransactionIsolationLevel");
    }

    @Override
    public Publisher<Void> setLockWaitTimeout(Duration timeout) {
        return refuse("setLockWaitTimeout");
    }

    @Override
    public Publisher<Void> setStatementTimeout(Duration timeout) {
        return refuse("setStatementTimeout");
    }
}
