package io.onceflux.benchmarks;

import io.onceflux.benchmarks.turns.InTurns;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** Measures, and writes the report. Run it with {@code dev/bench}. Exit code: 0, 1 if it failed, 2 for a wrong argument. */
@Command(name = "dev/bench", mixinStandardHelpOptions = true, sortOptions = false)
final class Bench implements Callable<Integer> {

    @Option(names = "--quick", description = "A subset in less than six minutes.")
    boolean quick;

    @Option(names = "--only", split = ",", description = "Only these parts.")
    @Nullable
    Set<String> only;

    @Option(names = "--warm-up", defaultValue = "15")
    int warmUpSeconds;

    @Option(names = "--rounds")
    @Nullable
    Integer rounds;

    @Option(names = "--slice")
    @Nullable
    Integer sliceMillis;

    @Option(names = "--output", defaultValue = "benchmarks/target/report")
    Path output = Path.of("benchmarks/target/report");

    public static void main(String[] args) {
        System.setProperty("jmh.ignoreLock", "true"); // Runs several forks at a time, on purpose.
        System.exit(new CommandLine(new Bench()).execute(args));
    }

    @Override
    public Integer call() throws Exception {
        Plan plan = quick ? Plan.quick() : Plan.full();
        if (only != null) {
            plan = plan.only(only);
        }
        if (rounds != null && sliceMillis != null) {
            plan = plan.shortened(rounds, Duration.ofMillis(sliceMillis));
        }
        long start = System.nanoTime();
        try (Servers servers = new Servers()) {
            for (Part part : plan.parts()) {
                if (part.needsRabbit()) {
                    servers.startRabbit();
                }
                InTurns turns = new InTurns(
                        Duration.ofSeconds(warmUpSeconds),
                        part.slice(),
                        part.rounds(),
                        List.of("-Xms512m", "-Xmx512m", "-XX:+UseParallelGC"),
                        output.resolve("results").resolve(part.name()).toAbsolutePath(),
                        line -> System.out.printf(
                                "%4d s  %s: %s%n", (System.nanoTime() - start) / 1_000_000_000, part.name(), line));
                turns.measure(part.forks(), part.needsPostgres() ? servers::newSite : Servers::nowhere)
                        .forEach((what, rates) -> System.out.println(what + " " + rates));
            }
        }
        return 0;
    }
}
