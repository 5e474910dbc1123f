package io.onceflux.benchmarks.variant;

import java.time.Duration;
import java.util.Map;
import org.HdrHistogram.Histogram;

/**
 * One way to run the scenario. It is opened once, runs now and again with pauses between, and is audited and closed at the end.
 * Used by one thread.
 */
public interface Variant extends AutoCloseable {

    /** Gets ready to run for about this long. Not measured. */
    default void prepare(Duration time) {}

    /**
     * Runs for about this long.
     *
     * @return how many messages were done with (committed, and the source told) by the time it returned
     */
    long run(Duration time);

    /** Completes what is under way, so that nothing of this variant runs while others do. Not measured. */
    void rest();

    /** Lets messages come at a fixed rate from now on, whether the ones before are done or not; 0 for as fast as they are taken. */
    default void pace(double perSecond) {
        throw new UnsupportedOperationException("the messages of this variant have no pace");
    }

    /** The nanoseconds from when a message came, or should have by the pace, until it was done with; of the last run. */
    default Histogram latencies() {
        throw new UnsupportedOperationException("the messages of this variant have no pace");
    }

    /** What else there is to report at the end, in bytes. */
    default Map<String, Long> sizes() {
        return Map.of();
    }

    /** Throws if the books say otherwise than what was counted. At rest only. */
    void audit();

    @Override
    void close();
}
