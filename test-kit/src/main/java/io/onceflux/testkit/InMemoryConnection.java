package io.onceflux.testkit;

import io.r2dbc.spi.Batch;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionMetadata;
import io.r2dbc.spi.IsolationLevel;
import io.r2dbc.spi.Statement;
import io.r2dbc.spi.TransactionDefinition;
import io.r2dbc.spi.ValidationDepth;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Mono;

/** A connection of {@link InMemoryDatabase}: it knows when its transaction ends, and no SQL. */
final class InMemoryConnection implements Connection {

    /** The one statement of a claim: BEGIN goes with the first that there is. */
    static final String CLAIM = "CLAIM";

    private boolean inTransaction;
    private List<Consumer<Boolean>> atEnd = new ArrayList<>();

    synchronized void requireTransaction() {
        if (!inTransaction) {
            throw new IllegalStateException("a claim needs a transaction: without one it would stand alone");
        }
    }

    /** @param told whether the transaction was committed */
    synchronized void atEnd(Consumer<Boolean> told) {
        atEnd.add(told);
    }

    private Mono<Void> end(boolean committed) {
        return Mono.fromRunnable(() -> take().forEach(told -> told.accept(committed)));
    }

    private synchronized List<Consumer<Boolean>> take() {
        List<Consumer<Boolean>> all = atEnd;
        atEnd = new ArrayList<>();
        inTransaction = false;
        return all;
    }

    private synchronized void begin() {
        inTransaction = true;
    }

    @Override
    public Publisher<Void> beginTransaction() {
        return Mono.fromRunnable(this::begin);
    }

    @Override
    public Publisher<Void> beginTransaction(TransactionDefinition definition) {
        return beginTransaction();
    }

    @Override
    public Publisher<Void> commitTransaction() {
        return end(true);
    }

    @Override
    public Publisher<Void> rollbackTransaction() {
        return end(false);
    }

    @Override
    public Publisher<Void> close() {
        return end(false);
    }

    @Override
    public synchronized boolean isAutoCommit() {
        return !inTransaction;
    }

    @Override
    public Statement createStatement(String sql) {
        if (sql.equals(CLAIM) || sql.contains("default_transaction_isolation")) {
            return new FixedAnswer();
        }
        throw new UnsupportedOperationException(
                "an InMemoryDatabase has no SQL: an effect with statements is tested with a PostgreSQL. Refused: "
                        + sql);
    }

    @Override
    public Batch createBatch() {
        throw new UnsupportedOperationException("an InMemoryDatabase has no SQL");
    }

    @Override
    public Publisher<Void> setAutoCommit(boolean on) {
        return on ? end(true) : Mono.fromRunnable(this::begin);
    }

    @Override
    public Publisher<Void> createSavepoint(String name) {
        return Mono.error(new UnsupportedOperationException("an InMemoryDatabase has no savepoints"));
    }

    @Override
    public Publisher<Void> releaseSavepoint(String name) {
        return createSavepoint(name);
    }

    @Override
    public Publisher<Void> rollbackTransactionToSavepoint(String name) {
        return createSavepoint(name);
    }

    @Override
    public ConnectionMetadata getMetadata() {
        return new ConnectionMetadata() {
            @Override
            public String getDatabaseProductName() {
                return "OnceFlux in memory";
            }

            @Override
            public String getDatabaseVersion() {
                return "1";
            }
        };
    }

    @Override
    public IsolationLevel getTransactionIsolationLevel() {
        return IsolationLevel.READ_COMMITTED;
    }

    @Override
    public Publisher<Void> setTransactionIsolationLevel(IsolationLevel level) {
        return Mono.empty();
    }

    @Override
    public Publisher<Void> setLockWaitTimeout(Duration timeout) {
        return Mono.empty();
    }

    @Override
    public Publisher<Void> setStatementTimeout(Duration timeout) {
        return Mono.empty();
    }

    @Override
    public Publisher<Boolean> validate(ValidationDepth depth) {
        return Mono.just(true);
    }
}
