package io.onceflux.benchmarks.variant;

import io.r2dbc.spi.Batch;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.ConnectionFactoryMetadata;
import io.r2dbc.spi.ConnectionMetadata;
import io.r2dbc.spi.IsolationLevel;
import io.r2dbc.spi.Statement;
import io.r2dbc.spi.TransactionDefinition;
import io.r2dbc.spi.ValidationDepth;
import java.time.Duration;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;

/**
 * Connections to nothing: transactions begin and commit, and the one query of the start-up check is answered. COMMIT is
 * answered on another thread, as a driver would on its event loop, so that messages gather behind a lane that is at work.
 */
final class MemoryDatabase implements ConnectionFactory {

    private final Scheduler eventLoops;

    MemoryDatabase(Scheduler eventLoops) {
        this.eventLoops = eventLoops;
    }

    @Override
    public Mono<Connection> create() {
        return Mono.fromSupplier(() -> new MemoryConnection(eventLoops));
    }

    @Override
    public ConnectionFactoryMetadata getMetadata() {
        return () -> "PostgreSQL";
    }

    private static final class MemoryConnection implements Connection {

        private final Scheduler eventLoops;
        private boolean autoCommit = true;

        MemoryConnection(Scheduler eventLoops) {
            this.eventLoops = eventLoops;
        }

        @Override
        public Publisher<Void> beginTransaction() {
            return Mono.fromRunnable(() -> autoCommit = false);
        }

        @Override
        public Publisher<Void> beginTransaction(TransactionDefinition definition) {
            return beginTransaction();
        }

        @Override
        public Publisher<Void> commitTransaction() {
            return Mono.<Void>fromRunnable(() -> autoCommit = true).subscribeOn(eventLoops);
        }

        @Override
        public Publisher<Void> rollbackTransaction() {
            return Mono.fromRunnable(() -> autoCommit = true);
        }

        @Override
        public boolean isAutoCommit() {
            return autoCommit;
        }

        @Override
        public Statement createStatement(String sql) {
            return new MemoryStatement("read committed");
        }

        @Override
        public Publisher<Void> close() {
            return Mono.empty();
        }

        @Override
        public Publisher<Void> setAutoCommit(boolean on) {
            return Mono.fromRunnable(() -> autoCommit = on);
        }

        @Override
        public Batch createBatch() {
            throw new UnsupportedOperationException();
        }

        @Override
        public Publisher<Void> createSavepoint(String name) {
            throw new UnsupportedOperationException();
        }

        @Override
        public ConnectionMetadata getMetadata() {
            throw new UnsupportedOperationException();
        }

        @Override
        public IsolationLevel getTransactionIsolationLevel() {
            return IsolationLevel.READ_COMMITTED;
        }

        @Override
        public Publisher<Void> releaseSavepoint(String name) {
            throw new UnsupportedOperationException();
        }

        @Override
        public Publisher<Void> rollbackTransactionToSavepoint(String name) {
            throw new UnsupportedOperationException();
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
        public Publisher<Void> setTransactionIsolationLevel(IsolationLevel level) {
            return Mono.empty();
        }

        @Override
        public Publisher<Boolean> validate(ValidationDepth depth) {
            return Mono.just(true);
        }
    }
}
