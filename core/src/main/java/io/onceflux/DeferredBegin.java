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
        return Mono.defer(() -> asked == null || succeeded ? Mono.empty() : theOne());
    }

    /** What is to run in the transaction, sent when BEGIN was answered. */
    Flux<Result> before(Publisher<? extends Result> execution) {
        return succeeded ? Flux.from(execution) : begun().thenMany(Flux.<Result>from(execution));
    }

    /** What is to run in the transaction, sent behind BEGIN; fails if BEGIN does. */
    Flux<Result> with(Publisher<? extends Result> execution) {
        return Flux.defer(() -> sent || !isFresh()
                ? before(execution)
                : Flux.mergeSequential(begun().thenMany(Flux.<Result>empty()), execution));
    }

    private Mono<Void> theOne() {
        Mono<Void> another = Limits.within(limit, Mono.defer(this::send))
                .doOnSuccess(done -> succeeded = true)
                .onErrorMap(NoConnectionException::new)
                .cache();
        Mono<Void> first = begin.compareAndExchange(null, another);
        return first == null ? another : first;
    }

    private Mono<Void> send() {
        sent = true;
        TransactionDefinition definition = asked;
        return isFresh() && definition != null
                ? MarkedTransaction.begin(connection, definition)
                : Mono.error(new IllegalStateException("the pool gave a connection with a transaction still open"));
    }

    /** The driver skips BEGIN where a transaction is open, and would commit with ours what somebody left in it. */
    private boolean isFresh() {
        return connection.isAutoCommit();
    }
}
