package io.onceflux.testkit;

/** Where a {@link DuplicatingSource} lets things break. */
public enum Step {

    /** The source loses the message before it is looked at, as with a channel that closes: it is delivered again. */
    BEFORE_CLAIM,

    /** The connection breaks instead of the COMMIT: claim and effect are rolled back. Needs {@link DuplicatingSource#crashing}. */
    BEFORE_COMMIT,

    /** The connection breaks behind the COMMIT, before its answer. Needs {@link DuplicatingSource#crashing}. */
    AFTER_COMMIT,

    /** The acknowledgement does not arrive: what is committed is delivered again. */
    BEFORE_ACKNOWLEDGEMENT
}
