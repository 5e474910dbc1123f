package io.onceflux;

/**
 * Told what a {@link Retention} does: for meters. Every method does nothing by default. It is called on the driver's thread or that of a
 * pause, and must not block. What it throws is logged and changes nothing.
 */
public interface RetentionListener {

    /** The listener that is told about one table; asked for when it is given to the retention. Default: this one. */
    default RetentionListener forTable(String table) {
        return this;
    }

    /**
     * A transaction of a run has ended, or a partition is dropped.
     *
     * @param removed how many claims by it; those of a partition about, as PostgreSQL has counted them last
     * @param done the share of the run that is done, from 0 to 1
     */
    default void onProgress(long removed, double done) {}

    /** A run has come to its end. Not told where another instance was at it. */
    default void onEnded() {}

    /** A run has failed. */
    default void onFailed(Throwable error) {}
}
