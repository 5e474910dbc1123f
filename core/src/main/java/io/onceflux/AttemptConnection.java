package io.onceflux;

import io.onceflux.postgres.MarkedTransaction;
import io.r2dbc.postgresql.api.PostgresTransactionDefinition;
import io.r2dbc.postgresql.api.PostgresqlConnection;
import io.r2dbc.spi.Batch;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.IsolationLevel;
import io.r2dbc.spi.Result;
import io.r2dbc.spi.Statement;
import io.r2dbc.spi.TransactionDefinition;
import io.r2dbc.spi.Wrapped;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.r2dbc.connection.ConnectionHolder;
import org.springframework.transaction.reactive.TransactionContext;
import org.springframework.transaction.reactive.TransactionSynchronizationManager;
import reactor.core.publisher.Mono;
import reactor.util.context.ContextView;

/**
 * The connection of one attempt. Every step that controls the transaction ends within a limit, and a connection of which it
 * is not certain that its transaction has ended is closed instead of going back to the pool:
 *
 * <ul>
 *   <li>a connection that comes with an open transaction;
 *   <li>BEGIN that is cut short or fails;
 *   <li>COMMIT without a definite answer: the pool takes the transaction for ended when COMMIT is sent;
 *   <li>ROLLBACK while a statement may still be on its way (see {@link StatementGate}), or behind one that runs on: the
 *       statement is cancelled, and as that may also hit what comes next, the connection is closed after it.
 * </ul>
 */
final class AttemptConnection extends DelegatingConnection {

    private static final Logger log = LoggerFactory.getLogger(AttemptConnection.class);

    /** How long ROLLBACK may wait behind a running statement before that statement is cancelled. */
    private static final Duration PATIENCE = Duration.ofMillis(100);

    private final Duration controlLimit;
    private final ThrownErrors thrownErrors = new ThrownErrors();
    private final StatementGate gate = new StatementGate(thrownErrors);
    private final DeferredBegin begin;

    // Neither is cancelled with who waits for it: cut short, the driver would leave the connection open, or the pool
    // count it as in use, for ever.
    private final Mono<Void> closing =
            Mono.defer(() -> Mono.from(physical().close())).cache();
    private final Mono<Void> givingBack = Mono.defer(this::giveBackNow).cache();

    // Whoever asks first; who asks again waits for the same.
    private final Mono<Void> rollingBack = Mono.defer(this::rollBackNow).cache();

    private final AtomicBoolean ending = new AtomicBoolean();
    private volatile @Nullable TransactionContext transaction;
    private volatile boolean working;
    private volatile boolean committing;
    private volatile boolean committed;
    private volatile boolean discarded;
    private volatile boolean givenBack;

    AttemptConnection(Connection pooled, Duration controlLimit) {
        super(pooled);
        this.controlLimit = controlLimit;
        this.begin = new DeferredBegin(pooled, controlLimit);
    }

    /** How many statements have run in the transaction, whoever has sent them. */
    int statements() {
        return gate.statements();
    }

    /**
     * Whether anything may have been written since, although it is said that no row was affected: by all but one statement that does nothing else,
     * and whose own count was 0.
     *
     * @param statements what {@link #statements()} was before
     */
    boolean mayHaveWrittenSince(int statements) {
        int since = gate.statements() - statements;
        boolean hasWrittenNothing = gate.lastRows() == 0 && new SqlText(gate.lastStatement()).isPlainWrite();
        return since > 1 || (since == 1 && !hasWrittenNothing);
    }

    ThrownErrors thrownErrors() {
        return thrownErrors;
    }

    @Override
    public Statement createStatement(String sql) {
        return createStatement(sql, begin::before);
    }

    private Statement createStatement(String sql, UnaryOperator<Publisher<? extends Result>> begin) {
        TransactionControl.refuseIn(sql);
        return gate.guard(
                sql,
                new InterceptedStatement(
                        delegate.createStatement(sql), (execution, several) -> begin.apply(execution)));
    }

    @Override
    public Batch createBatch() {
        return gate.guard(new InterceptedBatch(delegate.createBatch(), TransactionControl::refuseIn, begin::before));
    }

    @Override
    public Publisher<Void> createSavepoint(String name) {
        return gate.guard(() -> begin.begun().then(Mono.defer(() -> Mono.from(delegate.createSavepoint(name)))));
    }

    @Override
    public Publisher<Void> releaseSavepoint(String name) {
        return gate.guard(() -> delegate.releaseSavepoint(name));
    }

    @Override
    public Publisher<Void> rollbackTransactionToSavepoint(String name) {
        return gate.guard(() -> delegate.rollbackTransactionToSavepoint(name));
    }

    /**
     * The same connection, but a statement is sent together with BEGIN, and before it is known whether that succeeds: it must do
     * nothing outside of a {@link MarkedTransaction}.
     */
    Connection togetherWithBegin() {
        return new DelegatingConnection(this) {
            @Override
            public Statement createStatement(String sql) {
                return AttemptConnection.this.createStatement(sql, begin::with);
            }
        };
    }

    /**
     * Runs the transaction's work. The work can neither end the transaction nor give the connection away, not even as it is cancelled:
     * what joins Spring's transaction has this connection in its hands, too. Spring's own calls come from outside of the work's
     * context, and only once it has ended.
     */
    <R> Mono<R> runWork(Function<? super AttemptConnection, Mono<R>> work) {
        return Mono.deferContextual(context -> {
                    transaction = context.getOrDefault(TransactionContext.class, null);
                    working = true;
                    return work.apply(this);
                })
                .doOnTerminate(this::workEnded)
                .doOnCancel(this::workEnded)
                .contextWrite(context -> context.put(AttemptConnection.class, this));
    }

    private void workEnded() {
        working = false;
        transaction = null;
    }

    /**
     * Has Spring find a view of this connection, in this transaction, where it looks for a connection of a factory.
     * Otherwise it would ask the factory, and register its connection to be released around the commit: 20 operators a message.
     */
    void bind(ConnectionFactory factory, Connection view) {
        TransactionContext context = transaction;
        if (context != null) {
            ConnectionHolder holder = new ConnectionHolder(view);
            holder.setSynchronizedWithTransaction(true);
            holder.requested(); // Once more than it is released, or it would forget the connection.
            new TransactionSynchronizationManager(context).bindResource(factory, holder);
        }
    }

    private Mono<Void> notFromWithin(String call, Supplier<Mono<Void>> otherwise) {
        return Mono.deferContextual(context -> working || isWork(context)
                ? Mono.error(new UnsupportedOperationException(
                        "an effect cannot call " + call + ", on whatever connection: the transaction is OnceFlux's"))
                : otherwise.get());
    }

    private boolean isWork(ContextView context) {
        return context.getOrDefault(AttemptConnection.class, null) == this;
    }

    /** Whether BEGIN was sent and is not answered, so that nothing of the work has run. */
    boolean waitsForBegin() {
        return begin.wasSent() && !begin.succeeded();
    }

    @Override
    public Mono<Void> beginTransaction() {
        return beginTransaction(PostgresTransactionDefinition.mutability(true));
    }

    /** Completes at once; BEGIN is sent with the first statement, or before it. */
    @Override
    public Mono<Void> beginTransaction(TransactionDefinition definition) {
        return notFromWithin("beginTransaction", () -> begin.ask(definition));
    }

    /** Spring calls it as it cleans up. To the driver it would be a COMMIT of what is still open. */
    @Override
    public Mono<Void> setAutoCommit(boolean autoCommit) {
        return notFromWithin("setAutoCommit", () -> delegate.isAutoCommit() ? Mono.empty() : discard());
    }

    @Override
    public Mono<Void> setTransactionIsolationLevel(IsolationLevel level) {
        return notFromWithin(
                "setTransactionIsolationLevel", () -> Mono.from(delegate.setTransactionIsolationLevel(level)));
    }

    @Override
    public Mono<Void> commitTransaction() {
        return notFromWithin("commitTransaction", this::commit);
    }

    private Mono<Void> commit() {
        if (!ending.compareAndSet(false, true)) {
            return Mono.error(
                    new IllegalStateException("somebody who kept the effect's connection has ended its transaction"));
        }
        if (!gate.close()) {
            return cutAndDiscard()
                    .then(Mono.error(new IllegalStateException(
                            "the effect completed while a statement of it was still running, or had been given up before it was"
                                    + " answered, or had a Result that nobody read: what it returns must contain every statement"
                                    + " that it starts, to its end")));
        }
        if (!begin.wasSent()) {
            return Mono.empty();
        }
        if (delegate.isAutoCommit()) {
            return Mono.error(new IllegalStateException(
                    "the effect ended the transaction itself, with COMMIT or ROLLBACK as SQL; leave that to OnceFlux"));
        }
        committing = true;
        return Limits.within(controlLimit, Mono.from(delegate.commitTransaction()))
                .doOnSuccess(done -> committed = true)
                .onErrorResume(error -> SqlStates.isDefiniteAnswer(SqlStates.stateOf(error))
                        ? Mono.error(error)
                        : discard().then(Mono.error(new UnknownCommitException(error))));
    }

    @Override
    public Mono<Void> rollbackTransaction() {
        return notFromWithin("rollbackTransaction", () -> rollingBack);
    }

    private Mono<Void> rollBackNow() {
        ending.set(true);
        if (discarded) {
            return Mono.empty();
        }
        if (!gate.close()) {
            return cutAndDiscard(); // Also where BEGIN was not sent: it may be about to be.
        }
        if (!begin.wasSent()) {
            return Mono.empty();
        }
        if (!begin.succeeded()) {
            return discard();
        }
        if (!committing && delegate.isAutoCommit()) {
            log.error("an effect had ended its transaction itself, by SQL that OnceFlux did not recognise: what it"
                    + " did until then may be committed with its claim, and its message be taken for a duplicate");
        }
        return rollBack();
    }

    private Mono<Void> rollBack() {
        Mono<Void> rollback = Mono.from(delegate.rollbackTransaction()).cache();
        return rollback.timeout(
                        PATIENCE,
                        Mono.defer(() -> cancelStatement().then(rollback).then(discard())))
                .timeout(controlLimit)
                .onErrorResume(error -> {
                    log.debug("rollback was not confirmed; the connection is closed, which rolls back", error);
                    return discard();
                });
    }

    /** Ends a statement that may be running and closes the connection, so that the server rolls back at once. */
    private Mono<Void> cutAndDiscard() {
        return cancelStatement().then(discard());
    }

    /** Gives the connection back; from within the work it does nothing, as with any connection that joins a transaction of Spring's. */
    @Override
    public Mono<Void> close() {
        return Mono.deferContextual(context -> working || isWork(context) ? Mono.empty() : giveBack());
    }

    /** Whether COMMIT was sent. */
    boolean isCommitting() {
        return committing;
    }

    /** Whether COMMIT was answered. */
    boolean isCommitted() {
        return committed;
    }

    /** Ends the transaction, if it has not ended, and gives the connection back, if nobody has. */
    Mono<Void> end() {
        return Mono.defer(() -> {
            if (givenBack) {
                return Mono.empty();
            }
            return committed ? giveBack() : rollingBack.then(Mono.defer(this::giveBack));
        });
    }

    private Mono<Void> giveBack() {
        return Limits.within(controlLimit, givingBack).onErrorResume(error -> {
            log.debug("the connection could not be given back; it is closed", error);
            return discard();
        });
    }

    private Mono<Void> giveBackNow() {
        givenBack = true;
        boolean open = ending.compareAndSet(false, true) && begin.wasSent();
        Mono<Void> toPool = Mono.defer(() -> Mono.from(delegate.close()));
        return open ? discard().then(toPool) : toPool;
    }

    private Mono<Void> cancelStatement() {
        return physical() instanceof PostgresqlConnection postgres
                ? postgres.cancelRequest().timeout(controlLimit).onErrorResume(error -> {
                    log.debug("the running statement could not be cancelled", error);
                    return Mono.empty();
                })
                : Mono.empty();
    }

    /** Gives the connection back closed: nobody can say what the server is still doing on it. */
    Mono<Void> abandon() {
        return discard().then(giveBack());
    }

    /** Closes the connection to the server, so that the pool finds it dead and the server rolls back. */
    private Mono<Void> discard() {
        return Mono.defer(() -> {
                    discarded = true;
                    return closing;
                })
                .timeout(controlLimit)
                .onErrorResume(error -> {
                    log.debug("closing a connection that is given up failed", error);
                    return Mono.empty();
                });
    }

    private Connection physical() {
        Connection at = delegate;
        while (at instanceof Wrapped<?> wrapped && wrapped.unwrap() instanceof Connection inner) {
            at = inner;
        }
        return at;
    }

    /** The connection died while COMMIT was under way; the claim will tell whether it took place. */
    static final class UnknownCommitException extends RuntimeException {
        UnknownCommitException(Throwable cause) {
            super("the connection was lost during COMMIT; the claim will tell whether it took place", cause);
        }
    }

    /** No connection could be had for the transaction, or BEGIN failed: nothing of the message has run. */
    static final class NoConnectionException extends RuntimeException {
        NoConnectionException(Throwable cause) {
            super("no connection for the transaction: " + cause.getMessage(), cause);
        }
    }
}
