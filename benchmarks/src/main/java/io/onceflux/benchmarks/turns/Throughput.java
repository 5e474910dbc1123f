package io.onceflux.benchmarks.turns;

import io.onceflux.benchmarks.variant.Case;
import io.onceflux.benchmarks.variant.Case.Load;
import io.onceflux.benchmarks.variant.Variant;
import io.onceflux.benchmarks.variant.Variants;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
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
import org.openjdk.jmh.infra.IterationParams;
import org.openjdk.jmh.runner.IterationType;

/**
 * How many messages a second. An invocation lets a variant run for a slice of time, an iteration is a turn of one case, and
 * {@code messages} is the figure; the invocations a second that JMH reports first mean nothing.
 */
@BenchmarkMode(Mode.Throughput)
public class Throughput {

    /** A system property: how long an invocation is, in milliseconds. */
    static final String SLICE = "onceflux.slice.millis";

    /** A system property: the folder for what JMH has no place for. */
    static final String RESULTS = "onceflux.results";

    @Benchmark
    public void run(Turn turn, Counters counters) {
        counters.messages += turn.run();
    }

    /** What is reported a second. */
    @State(Scope.Thread)
    @AuxCounters(AuxCounters.Type.OPERATIONS)
    @SuppressWarnings("NullAway.Init")
    public static class Counters {
        public long messages;

        @Setup(Level.Iteration)
        public void zero() {
            messages = 0;
        }
    }

    /** The cases of this fork, each opened once. */
    @State(Scope.Benchmark)
    @SuppressWarnings("NullAway.Init")
    public static class Turn {

        @Param("jdbc")
        public String cases;

        private final Duration slice = Duration.ofMillis(Long.getLong(SLICE, 1_000));
        private final Path results = Path.of(System.getProperty(RESULTS, "target/report/results"));
        private final Latencies latencies = new Latencies(results);
        private final Sizes sizes = new Sizes(results);
        private final List<Variant> variants = new ArrayList<>();
        private Fork fork;
        private TurnClient turns;
        private @Nullable IterationType type;
        private int iteration;
        private Case current;
        private Variant variant;
        private double perSecond;

        @Setup(Level.Trial)
        public void open() throws IOException {
            fork = Fork.parse(cases);
            turns = new TurnClient(fork);
            for (int i = 0; i < fork.cases().size(); i++) {
                variants.add(Variants.open(fork.cases().get(i), turns.sites().get(i)));
            }
        }

        @Setup(Level.Iteration)
        public void awaitTurn(IterationParams params) throws IOException {
            Map<String, Double> rates = turns.await();
            System.gc();
            if (type != params.getType()) {
                type = params.getType();
                iteration = 0;
            }
            current = fork.caseOf(iteration);
            variant = variants.get(fork.cases().indexOf(current));
            if (current.load() != Load.FULL) {
                variant.pace(rates.getOrDefault(current.reference().toString(), 0.0) / 2);
            }
        }

        @Setup(Level.Invocation)
        public void prepare() {
            variant.prepare(slice);
        }

        long run() {
            long start = System.nanoTime();
            long messages = variant.run(slice);
            perSecond = messages * 1e9 / (System.nanoTime() - start);
            return messages;
        }

        @TearDown(Level.Invocation)
        public void rest() {
            variant.rest();
        }

        @TearDown(Level.Iteration)
        public void yieldTurn() throws IOException {
            if (current.load() != Load.FULL && type == IterationType.MEASUREMENT) {
                latencies.keep(current, iteration / fork.cases().size(), variant.latencies());
            }
            iteration++;
            turns.done(current, perSecond);
        }

        @TearDown(Level.Trial)
        public void close() throws IOException {
            for (int i = 0; i < variants.size(); i++) {
                Variant each = variants.get(i);
                each.audit();
                sizes.keep(fork.cases().get(i), each.sizes());
                each.close();
            }
            turns.close();
        }
    }
}
