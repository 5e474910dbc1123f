package io.onceflux.benchmarks.turns;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import org.openjdk.jmh.results.IterationResult;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.results.format.ResultFormatType;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.options.OptionsBuilder;

/** Runs {@link DistinctKeys} in a JVM of 64 MB. */
public final class SmallHeap {

    private SmallHeap() {}

    /** Bytes on the heap after each million keys. */
    public static List<Long> measure(int millions, Path results) throws Exception {
        Files.createDirectories(results);
        RunResult result = new Runner(new OptionsBuilder()
                        .include("^" + DistinctKeys.class.getName().replace(".", "\\.") + "\\.million$")
                        .forks(1)
                        .warmupIterations(0)
                        .measurementIterations(millions)
                        .shouldFailOnError(true)
                        .jvmArgs("-Xmx64m", "-XX:+UseSerialGC")
                        .output(results.resolve("jmh-distinct-keys.log").toString())
                        .resultFormat(ResultFormatType.JSON)
                        .result(results.resolve("jmh-distinct-keys.json").toString())
                        .build())
                .runSingle();
        return result.getBenchmarkResults().iterator().next().getIterationResults().stream()
                .map(SmallHeap::bytes)
                .toList();
    }

    private static long bytes(IterationResult iteration) {
        return (long) Objects.requireNonNull(iteration.getSecondaryResults().get("bytes"))
                .getScore();
    }
}
