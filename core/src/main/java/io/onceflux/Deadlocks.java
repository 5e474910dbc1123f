package io.onceflux;

import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/** Warns, once, of batches that deadlock because nobody has said which messages change the same rows: each costs a second. */
final class Deadlocks {

    private static final String DEADLOCK = "40P01";
    private static final int ENOUGH = 3;

    private final Settings settings;
    private final AtomicInteger seen = new AtomicInteger();

    Deadlocks(Settings settings) {
        this.settings = settings;
    }

    /** @param error of an attempt at the messages, which are all of a batch or a part of one */
    void noted(List<? extends Message<?>> together, Throwable error) {
        boolean isOfUnordered = settings.maxBatch() > 1
                && together.stream().noneMatch(Message::ordered)
                && DEADLOCK.equals(SqlStates.stateOf(error));
        if (isOfUnordered && seen.incrementAndGet() == ENOUGH) {
            settings.listener()
                    .onWarning(
                            "batches deadlock with each other, which costs a second each: the effects of different messages change the"
                                    + " same rows. Give orderedBy(...) what names these rows, or use batchEffect(...)");
        }
    }
}
