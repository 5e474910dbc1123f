package io.onceflux.benchmarks.variant;

/** Messages that wait at a broker: a place that is filled before it is consumed. */
public interface Backlog extends AutoCloseable {

    /** Publishes the next messages, confirmed. */
    void fill(long messages);

    /** Throws if something is left, unacknowledged messages included, once nobody consumes any more. */
    void requireEmpty();

    long published();

    /** How many different orders were published. */
    long distinct();

    @Override
    void close();
}
