package io.onceflux.benchmarks;

import io.onceflux.benchmarks.report.Measurements;
import io.onceflux.benchmarks.report.Report;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** Measures, and writes the report. Run it with {@code dev/bench}. Exit code: 0, 1 if it failed, 2 for a wrong argument. */
@Command(
        name = "dev/bench",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {
            "Measures OnceFlux, and what it is compared with, on a real PostgreSQL, RabbitMQ and Kafka, and writes report.html,"
                    + " report.md and summary.json.",
            "Nothing else should run meanwhile: the report says so if something did."
        })
final class Bench implements Callable<Integer> {

    @Option(names = "--quick", description = "Every ratio of the summary, in less than six minutes on two cores.")
    boolean quick;

    @Option(
            names = "--only",
            split = ",",
            paramLabel = "PART",
            description = "Only these: database, rabbit, kafka, pipeline, latency, duplicates, lanes, hot-keys, table,"
                    + " memory, scale, retention, relay, partitions.")
    @Nullable
    Set<String> only;

    @Option(
            names = "--rounds",
            description = "How often each case runs. Default: 3 with --quick, otherwise 5 or 7, as the part needs.")
    @Nullable
    Integer rounds;

    @Option(
            names = "--slice",
            paramLabel = "MILLIS",
            description = "How long a case runs in a round. Default: 1,500 with --quick, otherwise 3,000 to 8,000.")
    @Nullable
    Integer sliceMillis;

    @Option(
            names = "--warm-up",
            paramLabel = "SECONDS",
            defaultValue = "15",
            description =
                    "How long each JVM warms up. Less than the default, ${DEFAULT-VALUE}, measures the interpreter.")
    int warmUpSeconds;

    @Option(
            names = "--output",
            paramLabel = "FOLDER",
            defaultValue = "benchmarks/target/report",
            description = "Where the report goes. Default: ${DEFAULT-VALUE}.")
    Path output = Path.of(".");

    @Option(names = "--report", description = "Measures nothing: writes the report of what is in the folder again.")
    boolean reportOnly;

    @Spec
    @Nullable
    CommandSpec spec;

    public static void main(String[] args) {
        System.setProperty("jmh.ignoreLock", "true"); // Several forks at a time, on purpose: only one of them runs.
        System.exit(commandLine().execute(args));
    }

    static CommandLine commandLine() {
        return new CommandLine(new Bench());
    }

    @Override
    public Integer call() throws Exception {
        Path kept = output.resolve("results").resolve("measurements.json");
        if (!reportOnly) {
            Files.createDirectories(output.resolve("results"));
            new Measuring(
                            plan(),
                            Duration.ofSeconds(warmUpSeconds),
                            output.resolve("results").toAbsolutePath(),
                            command())
                    .run(measured -> write(measured, kept));
        }
        new Report(Measurements.read(kept)).write(output);
        System.out.println("The report is in " + output.resolve("report.html"));
        return CommandLine.ExitCode.OK;
    }

    private static void write(Measurements measured, Path file) {
        try {
            measured.write(file);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    Plan plan() {
        Plan plan = quick ? Plan.quick() : Plan.full();
        try {
            if (only != null) {
                plan = plan.only(only);
            }
            return plan.with(rounds, sliceMillis == null ? null : Duration.ofMillis(sliceMillis));
        } catch (IllegalArgumentException e) {
            throw new ParameterException(Objects.requireNonNull(spec).commandLine(), String.valueOf(e.getMessage()), e);
        }
    }

    private String command() {
        return Stream.concat(
                        Stream.of("dev/bench"),
                        Objects.requireNonNull(spec).commandLine().getParseResult().originalArgs().stream())
                .collect(Collectors.joining(" "));
    }
}
