package io.onceflux;

import io.onceflux.AttemptConnection.UnknownCommitException;
import io.onceflux.Limits.LimitPassedException;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.r2dbc.connection.ConnectionHolder;
import org.springframework.transaction.ReactiveTransaction;
import org.springframework.transaction.ReactiveTransactionManager;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.reactive.TransactionSynchronizationManager;
import reactor.core.publisher.Mono;
import reactor.util.context.ContextView;

/**
 * Spring's transaction manager; but when it has ended a transaction, that has ended, and its connection is given back. By itself it does
 * neither where its bookkeeping fails: when an effect is cut that has begun another transaction (REQUIRES_NEW), or when what somebody has
 * registered to run around the commit fails, or does not end.
 */
final class EnsuredEnd implements ReactiveTransactionManager {

    private static final Logger log = LoggerFactory.getLogger(EnsuredEnd.class);

    /** COMMIT and ROLLBACK have limits of their own; the rest is for what others have registered. */
    private static final int TIMES_THE_CONTROL_LIMIT = 4;

    private final ReactiveTransactionManager spring;
    private final Object resource;
    private final Duration limit;

    /** @param resource what connections are bound by, to a transaction of Spring's */
    EnsuredEnd(ReactiveTransactionManager spring, Object resource, Duration controlLimit) {
        this.spring = spring;
        this.resource = resource;
        this.limit = controlLimit.multipliedBy(TIMES_THE_CONTROL_LIMIT);
    }

    @Override
    public Mono<ReactiveTransaction> getReactiveTransaction(@Nullable TransactionDefinition definition) {
        return spring.getReactiveTransaction(definition);
    }

    @Override
    public Mono<Void> commit(ReactiveTransaction transaction) {
        if (transaction.isRollbackOnly()) {
            return rollback(transaction);
        }
        return Mono.deferContextual(context -> {
            AttemptConnection connection = connectionOf(context);
            return TransactionSynchronizationManager.forCurrentTransaction().flatMap(manager -> {
                ConnectionHolder bound = bound(manager);
                if (bound == null || bound.getConnection() != connection) {
                    return rollBackFor(
                            transaction, "the effect completed while a transaction that it began was still going on");
                }
                return bound.isRollbackOnly()
                        ? rollBackFor(
                                transaction,
                                "what joined the transaction has marked it for rollback, but the effect completed")
                        : commit(transaction, connection, manager);
            });
        });
    }

    private Mono<Void> rollBackFor(ReactiveTransaction transaction, String reason) {
        return rollback(transaction).then(Mono.error(() -> new IllegalStateException(reason)));
    }

    private Mono<Void> commit(
            ReactiveTransaction transaction, AttemptConnection connection, TransactionSynchronizationManager manager) {
        return inTime(spring.commit(transaction), manager).onErrorResume(error -> {
            if (!connection.isCommitted()) {
                return connection.isCommitting() && error instanceof LimitPassedException
                        ? connection.abandon().then(Mono.error(new UnknownCommitException(error)))
                        : connection.end().then(Mono.error(error));
            }
            log.warn("the transaction is committed, but what was to run after that failed", error);
            return connection.end();
        });
    }

    /** It never fails: a failure would take the place of the one that it is called for. */
    @Override
    public Mono<Void> rollback(ReactiveTransaction transaction) {
        return Mono.deferContextual(context -> {
            AttemptConnection connection = connectionOf(context);
            return TransactionSynchronizationManager.forCurrentTransaction()
                    .flatMap(manager -> {
                        ConnectionHolder bound = bound(manager);
                        // Otherwise another transaction is in its place, and what Spring cleans up would be that one's.
                        return bound != null && bound.getConnection() == connection
                                ? inTime(spring.rollback(transaction), manager)
                                : Mono.empty();
                    })
                    .onErrorResume(error -> {
                        log.debug("Spring's rollback failed; the connection sees to it", error);
                        return Mono.empty();
                    })
                    .then(connection.end());
        });
    }

    private Mono<Void> inTime(Mono<Void> end, TransactionSynchronizationManager manager) {
        return manager.isSynchronizationActive()
                        && manager.getSynchronizations().isEmpty()
                ? end
                : Limits.within(limit, end);
    }

    private @Nullable ConnectionHolder bound(TransactionSynchronizationManager manager) {
        return manager.getResource(resource) instanceof ConnectionHolder holder ? holder : null;
    }

    private static AttemptConnection connectionOf(ContextView context) {
        AttemptConnection connection = context.<Handover>get(Handover.class).connection();
        if (connection == null) {
            throw new IllegalStateException("a transaction cannot end before it has a connection");
        }
        return connection;
    }
}
