package io.onceflux;

/** What it means that a {@link ConditionalEffect} affected no row. */
public enum NoRows {

    /** The effect had been committed before: {@link Outcome.Duplicate}, which is acknowledged. */
    DUPLICATE,

    /** A newer version, or a later state, is there: {@link Outcome.Stale}, which is acknowledged. */
    STALE,

    /**
     * The effect can never happen: {@link Outcome.Failed}, a dead letter at once, and what else the effect wrote is rolled back. Where a
     * message that was applied may come again, and sees no row then, this makes a dead letter of it: tell the two apart by looking.
     */
    FAILED,

    /**
     * The effect can happen now, although it could not just before: a look finds what the statement was waiting for, because another
     * transaction has committed in between. The message is tried again at once, as after a conflict.
     */
    AGAIN
}
