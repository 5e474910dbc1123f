package io.onceflux;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.IsolationLevel;
import io.r2dbc.spi.TransactionDefinition;
import java.time.Duration;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Mono;

/** The transaction's connection as what runs in it sees it: it cannot end the transaction, and closing it does nothing. */
class TransactionView extends DelegatingConnection {

    TransactionView(Connection transaction) {
        super(transaction);
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
