package io.onceflux;

import io.r2dbc.spi.Batch;
import io.r2dbc.spi.Result;
import io.r2dbc.spi.Statement;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;

/**
 * Lets the statements of one transaction pass while it is open, and knows whether any of them may still be on its way when it
 * is to end.
 *
 * <p>An effect that is cut by a time limit, a failure beside it, or a cancelled subscription may be about to send a statement
 * on another thread. Sent after ROLLBACK it would run by itself, in auto-commit, and stay. So the gate closes before the
 * transaction ends: a statement that comes later is refused, and if one came before and has had no answer, ROLLBACK is not
 * enough and the connection has to be closed. The same holds for COMMIT.
 */
final class StatementGate {

    private static final int CLOSED = Integer.MIN_VALUE;

    /** How many statements are between their start and their first answer; with the highest bit once the gate is closed. */
    private final AtomicInteger underWay = new AtomicInteger();

    private final ThrownErrors thrown;

    private volatile boolean cutUnanswered;

    StatementGate(ThrownErrors thrown) {
        this.thrown = thrown;
    }

    /** The statement, refusing to run once the gate is closed. */
    Statement guard(Statement statement) {
        return new InterceptedStatement(statement, this::pass);
    }

    Batch guard(Batch batch) {
        return new InterceptedBatch(batch, TransactionControl::refuseIn, this::pass);
    }

    /** Closes the gate; true if what is sent now comes after every statement that passed it. */
    boolean close() {
        int before = underWay.getAndUpdate(count -> count | CLOSED) & ~CLOSED;
        return before == 0 && !cutUnanswered;
    }

    private Flux<Result> pass(Publisher<? extends Result> execution) {
        return Flux.defer(() -> {
            if (!enter()) {
                return Flux.error(
                        new IllegalStateException("the transaction has ended: a statement of an effect may run only"
                                + " as a part of what the effect returns, and until that completes"));
            }
            AtomicBoolean left = new AtomicBoolean();
            return thrown.guard(Flux.from(execution)
                    .<Result>map(result -> new InterceptedResult(result, () -> leave(left), thrown))
                    .doOnTerminate(() -> leave(left))
                    .doOnCancel(() -> {
                        if (!left.get()) {
                            cutUnanswered = true;
                        }
                        leave(left);
                    }));
        });
    }

    private boolean enter() {
        return underWay.getAndUpdate(count -> count < 0 ? count : count + 1) >= 0;
    }

    private void leave(AtomicBoolean left) {
        if (left.compareAndSet(false, true)) {
            underWay.decrementAndGet();
        }
    }
}
