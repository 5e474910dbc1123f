package io.onceflux;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import reactor.core.publisher.Mono;

/** The time of a caller who waits for one message. It ends attempts, and the waiting for them; but not a COMMIT that was sent. */
final class Budget {

    /** What a failed attempt may take beyond it to be undone and found out about, as long as the database answers. */
    private static final Duration GRACE = Duration.ofSeconds(1);

    private enum State {
        OPEN,
        COMMITTING,
        OVER
    }

    private final Duration length;
    private final long deadline;
    private final AtomicReference<State> state = new AtomicReference<>(State.OPEN);

    /** Begins now. */
    Budget(Duration length) {
        this.length = length;
        this.deadline = now() + length.toMillis();
    }

    /** What is left of it, at least 1 ms and at most the limit. */
    Duration within(Duration limit) {
        return Duration.ofMillis(Math.max(1, Math.min(limit.toMillis(), deadline - now())));
    }

    /** Whether it has passed after a pause that begins now. */
    boolean isOverAfter(Duration pause) {
        return now() + pause.toMillis() >= deadline;
    }

    void attemptStarts() {
        state.compareAndSet(State.COMMITTING, State.OPEN);
    }

    /** COMMIT is about to be sent; false if it must not be, because nobody waits for it any more. */
    boolean commits() {
        return state.compareAndSet(State.OPEN, State.COMMITTING);
    }

    /** Fails when the caller has to be answered, whatever is still under way; never while a COMMIT is. */
    <V> Mono<V> over() {
        return Mono.delay(length.plus(GRACE))
                .filter(tick -> state.compareAndSet(State.OPEN, State.OVER))
                .switchIfEmpty(Mono.never())
                .flatMap(tick -> Mono.error(new BudgetOverException(length)));
    }

    private static long now() {
        return TimeUnit.NANOSECONDS.toMillis(System.nanoTime());
    }

    /** The caller could not be told more in its time: the database did not answer. */
    static final class BudgetOverException extends RuntimeException {
        BudgetOverException(Duration budget) {
            super("the database did not answer within the budget of " + budget.toMillis() + " ms");
        }
    }
}
