package io.onceflux.benchmarks.turns;

import io.onceflux.benchmarks.scenario.Site;
import io.onceflux.benchmarks.variant.Case;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.openjdk.jmh.results.IterationResult;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.results.format.ResultFormatType;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.Options;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;

/**
 * Runs forks of JMH side by side: first each warms up, then they go round, a slice for each case, so that whatever the machine
 * does meanwhile happens to all of them alike. JMH by itself would end one fork before it starts the next.
 *
 * @param warmUp how long a fork warms up at least
 * @param slice how long a case runs in a round
 * @param rounds how often
 * @param jvm options of the forks' JVMs
 * @param results the folder for JMH's own results and logs
 */
public record InTurns(
        Duration warmUp, Duration slice, int rounds, List<String> jvm, Path results, Consumer<String> progress) {

    /** A fork with many cases takes longer. */
    private static final Duration LEAST_WARM_UP_OF_CASE = Duration.ofSeconds(3);

    private static final TimeValue FOR_EVER = TimeValue.hours(3);

    public InTurns {
        jvm = List.copyOf(jvm);
    }

    /** The messages a second of each case, a number for each round. */
    public Map<Case, List<Double>> measure(List<Fork> forks, Supplier<Site> sites) throws IOException {
        forgetEarlierResults();
        ExecutorService threads = Executors.newCachedThreadPool();
        try (TurnServer turns = new TurnServer(sites)) {
            Map<Fork, CompletableFuture<Collection<RunResult>>> running = new LinkedHashMap<>();
            for (Fork fork : forks) {
                Options options = options(fork, turns.port());
                running.put(fork, CompletableFuture.supplyAsync(() -> run(options, turns), threads));
            }
            try {
                go(forks, turns);
            } catch (IOException e) {
                throw ended(running.values(), e);
            }
            Map<Case, List<Double>> rates = new LinkedHashMap<>();
            for (Map.Entry<Fork, CompletableFuture<Collection<RunResult>>> each : running.entrySet()) {
                rates.putAll(perCase(each.getKey(), each.getValue().join()));
            }
            return rates;
        } catch (CompletionException e) {
            throw new IllegalStateException("a fork failed; its log is in " + results, e.getCause());
        } finally {
            threads.shutdownNow();
        }
    }

    /** Latencies and sizes are found by their names; those of an earlier run are none of this one. */
    private void forgetEarlierResults() throws IOException {
        Files.createDirectories(results);
        try (DirectoryStream<Path> earlier = Files.newDirectoryStream(results, "{jmh,latency,sizes}-*")) {
            for (Path file : earlier) {
                Files.delete(file);
            }
        }
    }

    private void go(List<Fork> forks, TurnServer turns) throws IOException {
        turns.awaitAll(forks.size());
        for (Fork fork : forks) {
            progress.accept("warming up " + fork);
            for (int i = 0; i < fork.cases().size(); i++) {
                turns.turn(fork);
            }
        }
        List<Fork> order = new ArrayList<>(forks);
        for (int round = 1; round <= rounds; round++) {
            progress.accept("round " + round + " of " + rounds);
            for (Fork fork :
                    order) { // Its cases one after the other: what differs least is compared within the same seconds.
                for (int i = 0; i < fork.cases().size(); i++) {
                    turns.turn(fork);
                }
            }
            Collections.reverse(order); // Nobody is always first.
        }
    }

    private Options options(Fork fork, int port) {
        int cases = fork.cases().size();
        long warmUpMillis =
                Math.max(warmUp.toMillis() / cases, Math.min(warmUp.toMillis(), LEAST_WARM_UP_OF_CASE.toMillis()));
        return new OptionsBuilder()
                .include("^" + Throughput.class.getName().replace(".", "\\.") + "\\.run$")
                .param("cases", fork.asText())
                .forks(1)
                .threads(1)
                .warmupIterations(cases)
                .warmupTime(TimeValue.milliseconds(warmUpMillis))
                .measurementIterations(rounds * cases)
                .measurementTime(TimeValue.milliseconds(1)) // One invocation, which takes a slice.
                .timeout(FOR_EVER) // A turn may be a long time coming.
                .syncIterations(true) // Or the time of an iteration would run while it waits for its turn.
                .shouldFailOnError(true)
                .jvmArgs(jvm.toArray(String[]::new))
                .jvmArgsAppend(
                        "-D" + TurnClient.PORT + "=" + port,
                        "-D" + Throughput.SLICE + "=" + slice.toMillis(),
                        "-D" + Throughput.RESULTS + "=" + results)
                .output(results.resolve(fileName(fork) + ".log").toString())
                .resultFormat(ResultFormatType.JSON)
                .result(results.resolve(fileName(fork) + ".json").toString())
                .build();
    }

    private static String fileName(Fork fork) {
        return "jmh-" + fork.cases().get(0).toString().replace('/', '.');
    }

    /** A fork that fails ends the others too: they wait for the server, and the server waits for the fork. */
    private static Collection<RunResult> run(Options options, TurnServer turns) {
        try {
            return new Runner(options).run();
        } catch (RunnerException e) {
            turns.close();
            throw new CompletionException(e);
        }
    }

    private Map<Case, List<Double>> perCase(Fork fork, Collection<RunResult> results) {
        Map<Case, List<Double>> rates = new LinkedHashMap<>();
        fork.cases().forEach(each -> rates.put(each, new ArrayList<>()));
        int iteration = 0;
        for (IterationResult each : results.iterator()
                .next()
                .getBenchmarkResults()
                .iterator()
                .next()
                .getIterationResults()) {
            List<Double> ofCase = rates.get(fork.caseOf(iteration++));
            if (ofCase != null) {
                ofCase.add(Objects.requireNonNull(each.getSecondaryResults().get("messages"))
                        .getScore());
            }
        }
        return rates;
    }

    private IllegalStateException ended(Collection<CompletableFuture<Collection<RunResult>>> running, IOException e) {
        for (CompletableFuture<Collection<RunResult>> each : running) {
            if (each.isCompletedExceptionally()) {
                each.exceptionally(error -> {
                    e.addSuppressed(error);
                    return List.of();
                });
            }
        }
        return new IllegalStateException("a fork ended before its time; its log is in " + results, e);
    }
}
