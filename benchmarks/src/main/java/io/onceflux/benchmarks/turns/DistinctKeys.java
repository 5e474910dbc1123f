package io.onceflux.benchmarks.turns;

import io.onceflux.benchmarks.variant.Case;
import io.onceflux.benchmarks.variant.Variant;
import io.onceflux.benchmarks.variant.Variants;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import org.openjdk.jmh.annotations.AuxCounters;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/** What is left on the heap after another million distinct keys have gone through: an iteration is a million. */
@BenchmarkMode(Mode.SingleShotTime)
public class DistinctKeys {

    static final int KEYS = 1_000_000;

    private static final Duration SLICE = Duration.ofMillis(250);

    @Benchmark
    public void million(Keys keys, Heap heap) {
        for (long from = keys.gone; keys.gone - from < KEYS; ) {
            keys.gone += keys.variant.run(SLICE);
            keys.variant.rest();
        }
        System.gc();
        heap.keys = keys.gone;
        heap.bytes = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
    }

    /** What is reported after each million. */
    @State(Scope.Thread)
    @AuxCounters(AuxCounters.Type.EVENTS)
    public static class Heap {
        public long keys;
        public long bytes;
    }

    /** The pipeline with everything else in memory. */
    @State(Scope.Benchmark)
    @SuppressWarnings("NullAway.Init")
    public static class Keys {

        @Param("pipeline")
        public String what;

        private Variant variant;
        private long gone;

        @Setup(Level.Trial)
        public void open() {
            variant = Variants.openAlone(Case.parse(what));
        }

        @TearDown(Level.Trial)
        public void close() {
            variant.audit();
            variant.close();
        }
    }
}
