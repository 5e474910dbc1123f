package io.onceflux;

import io.r2dbc.spi.Batch;
import io.r2dbc.spi.Result;
import io.r2dbc.spi.Statement;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

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

    /** How many rows a statement has affected, where nobody has asked. */
    static final long UNKNOWN = -1;

    /** More than one: nobody asks for more. */
    private static final int SEVERAL = 2;

    /**
     * How many statements and results are between their start and their first answer; with the highest bit once the gate is closed.
     */
    private final AtomicInteger underWay = new AtomicInteger();

    private final ThrownErrors thrown;

    private final AtomicInteger statements = new AtomicInteger();

    private volatile String lastStatement = "";
    private volatile long lastRows = UNKNOWN;
    private volatile boolean cutUnanswered;

    StatementGate(ThrownErrors thrown) {
        this.thrown = thrown;
    }

    /** The statement, refusing to run once the gate is closed. */
    Statement guard(String sql, Statement statement) {
        return new InterceptedStatement(
                statement,
                (execution, severalBindings) -> pass(execution, sql, severalBindings ? SEVERAL : 1, severalBindings));
    }

    Batch guard(Batch batch) {
        return new InterceptedBatch(batch, sql -> {}, execution -> pass(execution, "", SEVERAL, false));
    }

    /** Another call to the server; it is not made once the gate is closed. */
    Mono<Void> guard(Supplier<Publisher<Void>> call) {
        return Mono.defer(() -> {
            Passage passage = new Passage();
            return passage.enter()
                    ? Mono.defer(() -> Mono.from(call.get()))
                            .doOnTerminate(passage::leave)
                            .doOnCancel(passage::cut)
                    : Mono.error(closed());
        });
    }

    /** How many statements have passed until now; what may be several in one call counts as such. */
    int statements() {
        return statements.get();
    }

    /** The one that passed last. */
    String lastStatement() {
        return lastStatement;
    }

    /** How many rows that one has affected, or {@link #UNKNOWN}. */
    long lastRows() {
        return lastRows;
    }

    /** Closes the gate; true if what is sent now comes after every statement that passed it. */
    boolean close() {
        int before = underWay.getAndUpdate(count -> count | CLOSED) & ~CLOSED;
        return before == 0 && !cutUnanswered;
    }

    private Flux<Result> pass(Publisher<? extends Result> execution, String sql, int howMany, boolean severalBindings) {
        return thrown.guard(execution, () -> {
            Execution statement = new Execution(severalBindings);
            if (!statement.enter()) {
                throw closed();
            }
            lastStatement = sql;
            lastRows = UNKNOWN;
            statements.addAndGet(howMany);
            return statement;
        });
    }

    private static IllegalStateException closed() {
        return new IllegalStateException("the transaction has ended: a statement of an effect may run only"
                + " as a part of what the effect returns, and until that completes");
    }

    /** The way of a statement, from its start to the server's answer; of one with several bindings, to its end. */
    private final class Execution extends Passage implements ThrownErrors.Observer<Result, Result> {

        private final boolean severalBindings;
        private volatile boolean hasResult;

        Execution(boolean severalBindings) {
            this.severalBindings = severalBindings;
        }

        /**
         * Drivers hand out a result before they execute its statement: then it is the result that has to be answered, and with it the
         * statement is.
         */
        @Override
        public Result onNext(Result result) {
            Passage ofResult = new Passage();
            if (isUnderWay()) { // Otherwise it was cancelled, and the result goes nowhere.
                ofResult.enterAnyway();
                hasResult = true;
            }
            return new InterceptedResult(result, answerOf(ofResult), thrown);
        }

        private InterceptedResult.Answer answerOf(Passage ofResult) {
            return new InterceptedResult.Answer() {
                @Override
                public void came() {
                    ofResult.leave();
                    if (!severalBindings) {
                        leave();
                    }
                }

                @Override
                public void rows(long count) {
                    lastRows = count;
                }

                @Override
                public void isNotWaitedFor() {
                    ofResult.cut();
                }
            };
        }

        @Override
        public void onEnd() {
            leave();
        }

        @Override
        public void onCancel() {
            if (hasResult && !severalBindings) {
                leave();
            } else {
                cut();
            }
        }
    }

    /** The way of a statement, or of one result of it, through the gate. */
    private class Passage {

        private final AtomicBoolean inside = new AtomicBoolean();

        final boolean enter() {
            boolean open = underWay.getAndUpdate(count -> count < 0 ? count : count + 1) >= 0;
            inside.set(open);
            return open;
        }

        final void enterAnyway() {
            underWay.incrementAndGet();
            inside.set(true);
        }

        final boolean isUnderWay() {
            return inside.get();
        }

        final void leave() {
            if (inside.compareAndSet(true, false)) {
                underWay.decrementAndGet();
            }
        }

        /** Nobody waits for the answer any more, whether it has come or not. */
        final void cut() {
            if (isUnderWay()) {
                cutUnanswered = true;
            }
            leave();
        }
    }
}
