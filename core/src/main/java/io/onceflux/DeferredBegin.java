package io.onceflux;

import io.onceflux.AttemptConnection.NoConnectionException;
import io.onceflux.postgres.MarkedTransaction;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Result;
import io.r2dbc.spi.TransactionDefinition;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * BEGIN, put off until there is a statement to send it with: a round trip less for each transaction (docs/decisions/0012).
 *
 * <p>A statement that is sent together with BEGIN does not know whether that succeeds, so it must do nothing outside of a {@link
 * MarkedTransaction}; the claim can do that.
 */
final class DeferredBegin {

    private final Connection connection;
    private final Duration limit;

    private volatile @Nullable TransactionDefinition asked;
    private final AtomicReference<@Nullable Mono<Void>> begin = new AtomicReference<>();
    private volatile boolean sent;
    private volatile boolean succeeded;

    DeferredBegin(Connection connection, Duration limit) {
        this.connection = connection;
        this.limit = limit;
    }

    /** From now on statements belong to a transaction. */
    Mono<Void> ask(TransactionDefinition definition) {
        return Mono.fromRunnable(() -> asked = definition);
    }

    /** Whether there may be a transaction to end. */
    boolean wasSent() {
        return sent;
    }

    /** Whether there is one: BEGIN succeeded. */
    boolean succeeded() {
        return succeeded;
    }

    /** Completes when the transaction has begun; sends BEGIN if nobody has. Does nothing where no transaction was asked for. */
    Mono<Void> begun() {
        return Mono.defer(() -> {
            TransactionDefinition definition = asked;
            if (definition == null || succeeded) {
                return Mono.empty();
            }
            Mono<Void> plain = begin(Mono.defer(() -> Mono.from(connection.beginTransaction(definition))));
            Mono<Void> first = begin.compareAndExchange(null, plain);
            return first == null ? plain : first;
        });
    }

    /** What is to run in the transaction, sent when BEGIN was answered. */
    Flux<Result> before(Publisher<? extends Result> execution) {
        return begun().thenMany(Flux.<Result>from(execution));
    }

    /** What is to run in the transaction, sent together with BEGIN if it is the first; fails if BEGIN does. */
    Flux<Result> with(Publisher<? extends Result> execution) {
        return Flux.defer(() -> {
            TransactionDefinition definition = asked;
            if (definition == null || succeeded || !isFresh()) {
                return before(execution);
            }
            Mono<Void> marked = begin(MarkedTransaction.begin(connection, definition));
            return begin.compareAndSet(null, marked)
                    ? Flux.mergeSequential(marked.thenMany(Flux.<Result>empty()), execution)
                    : before(execution);
        });
    }

    private Mono<Void> begin(Mono<Void> begin) {
        return Limits.within(limit, Mono.defer(() -> {
                    sent = true;
                    return isFresh() ? begin : Mono.error(notFresh());
                }))
                .doOnSuccess(done -> succeeded = true)
                .onErrorMap(NoConnectionException::new)
                .cache();
    }

    /** The driver skips BEGIN where a transaction is open, and would commit with ours what somebody left in it. */
    private boolean isFresh() {
        return connection.isAutoCommit();
    }

    private static IllegalStateException notFresh() {
        return new IllegalStateException("the pool gave a connection with a transaction still open");
    }
}
