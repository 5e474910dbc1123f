package io.onceflux;

import io.r2dbc.spi.Batch;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionMetadata;
import io.r2dbc.spi.IsolationLevel;
import io.r2dbc.spi.Statement;
import io.r2dbc.spi.TransactionDefinition;
import io.r2dbc.spi.ValidationDepth;
import io.r2dbc.spi.Wrapped;
import java.time.Duration;
import org.reactivestreams.Publisher;

/** A connection that passes every call on. */
abstract class DelegatingConnection implements Connection, Wrapped<Connection> {

    protected final Connection delegate;

    DelegatingConnection(Connection delegate) {
        this.delegate = delegate;
    }

    @Override
    public Connection unwrap() {
        return delegate;
    }

    @Override
    public Publisher<Void> beginTransaction() {
        return delegate.beginTransaction();
    }

    @Override
    public Publisher<Void> beginTransaction(TransactionDefinition definition) {
        return delegate.beginTransaction(definition);
    }

    @Override
    public Publisher<Void> close() {
        return delegate.close();
    }

    @Override
    public Publisher<Void> commitTransaction() {
        return delegate.commitTransaction();
    }

    @Override
    public Batch createBatch() {
        return delegate.createBatch();
    }

    @Override
    public Publisher<Void> createSavepoint(String name) {
        return delegate.createSavepoint(name);
    }

    @Override
    public Statement createStatement(String sql) {
        return delegate.createStatement(sql);
    }

    @Override
    public boolean isAutoCommit() {
        return delegate.isAutoCommit();
    }

    @Override
    public ConnectionMetadata getMetadata() {
        return delegate.getMetadata();
    }

    @Override
    public IsolationLevel getTransactionIsolationLevel() {
        return delegate.getTransactionIsolationLevel();
    }

    @Override
    public Publisher<Void> releaseSavepoint(String name) {
        return delegate.releaseSavepoint(name);
    }

    @Override
    public Publisher<Void> rollbackTransaction() {
        return delegate.rollbackTransaction();
    }

    @Override
    public Publisher<Void> rollbackTransactionToSavepoint(String name) {
        return delegate.rollbackTransactionToSavepoint(name);
    }

    @Override
    public Publisher<Void> setAutoCommit(boolean autoCommit) {
        return delegate.setAutoCommit(autoCommit);
    }

    @Override
    public Publisher<Void> setLockWaitTimeout(Duration timeout) {
        return delegate.setLockWaitTimeout(timeout);
    }

    @Override
    public Publisher<Void> setStatementTimeout(Duration timeout) {
        return delegate.setStatementTimeout(timeout);
    }

    @Override
    public Publisher<Void> setTransactionIsolationLevel(IsolationLevel level) {
        return delegate.setTransactionIsolationLevel(level);
    }

    @Override
    public Publisher<Boolean> validate(ValidationDepth depth) {
        return delegate.validate(depth);
    }

    @Override
    public String toString() {
        return getClass().getSimpleName() + "[" + delegate + "]";
    }
}
