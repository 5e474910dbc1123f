package io.onceflux.benchmarks;

import io.onceflux.benchmarks.outbox.Relays;
import io.onceflux.benchmarks.partitions.Drops;
import io.onceflux.benchmarks.report.Measurements;
import io.onceflux.benchmarks.scale.ScaleOut;
import io.onceflux.benchmarks.turns.InTurns;
import io.onceflux.benchmarks.turns.Latencies;
import io.onceflux.benchmarks.turns.Sizes;
import io.onceflux.benchmarks.turns.SmallHeap;
import io.onceflux.benchmarks.variant.Case;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.HdrHistogram.Histogram;

/** Carries a {@link Plan} out. */
final class Measuring {

    /** The same for all that is compared. The collector is the better one for all of them where cores are few. */
    private static final List<String> JVM = List.of("-Xms512m", "-Xmx512m", "-XX:+UseParallelGC");

    private static final List<Double> PERCENTILES = List.of(50.0, 90.0, 99.0, 99.9, 100.0);

    private final Plan plan;
    private final Duration warmUp;
    private final Path results;
    private final String command;
    private final long start = System.nanoTime();
    private final Map<String, Map<String, List<Double>>> rates = new LinkedHashMap<>();
    private final Map<String, Map<String, Map<String, List<Double>>>> latencies = new LinkedHashMap<>();
    private final Map<String, Map<String, Long>> sizes = new LinkedHashMap<>();
    private List<Long> heap = List.of();
    private Map<String, Map<String, Long>> counts = Map.of();

    Measuring(Plan plan, Duration warmUp, Path results, String command) {
        this.plan = plan;
        this.warmUp = warmUp;
        this.results = results;
        this.command = command;
    }

    /** @param kept told all that is there after each part: what fails later loses none of it */
    void run(Consumer<Measurements> kept) throws Exception {
        double before = Conditions.load();
        try (Servers servers = new Servers();
                OtherWork others = OtherWork.watch()) {
            for (Part part : plan.parts()) {
                run(part, servers);
                kept.accept(soFar(before, others, servers));
            }
            if (plan.millionsOfKeys() > 0) {
                say(Plan.SMALL_HEAP, plan.millionsOfKeys() + " million distinct keys");
                heap = SmallHeap.measure(plan.millionsOfKeys(), results.resolve(Plan.SMALL_HEAP));
            }
            counts = scaleOut(servers);
            kept.accept(soFar(before, others, servers));
            relays(servers);
            kept.accept(soFar(before, others, servers));
            drops(servers);
            kept.accept(soFar(before, others, servers));
        }
    }

    private Measurements soFar(double before, OtherWork others, Servers servers) {
        double meanwhile = others.share();
        return new Measurements(
                Conditions.describe(command, before, meanwhile, servers),
                Conditions.isBusy(before, meanwhile),
                rates,
                latencies,
                sizes,
                heap,
                counts);
    }

    private Map<String, Map<String, Long>> scaleOut(Servers servers) {
        if (plan.scaleRounds() == 0) {
            return Map.of();
        }
        servers.startKafka();
        ScaleOut scaleOut = new ScaleOut(servers::newSite, line -> say(Plan.SCALE_OUT, line));
        scaleOut.measure(plan.scaleRounds());
        rates.put(Plan.SCALE_OUT, scaleOut.rates());
        return scaleOut.counts();
    }

    private void relays(Servers servers) {
        if (plan.relayRounds() == 0) {
            return;
        }
        Relays relays = new Relays(servers::newSite, line -> say(Plan.RELAYS, line));
        relays.measure(plan.relayRounds());
        rates.put(Plan.RELAYS, relays.rates());
        relays.ages().forEach((what, ages) -> keepPercentiles(Plan.RELAYS, what, ages));
    }

    private void drops(Servers servers) {
        if (plan.dropRounds() == 0) {
            return;
        }
        Drops drops = new Drops(servers::newSite, line -> say(Plan.DROPS, line), plan.claims());
        drops.measure(plan.dropRounds());
        rates.put(Plan.DROPS, drops.rates());
        drops.waits().forEach((what, waits) -> keepPercentiles(Plan.DROPS, what, waits));
    }

    private void run(Part part, Servers servers) throws IOException {
        Path folder = results.resolve(part.name());
        if (part.needsRabbit()) {
            servers.startRabbit();
        }
        if (part.needsKafka()) {
            servers.startKafka();
        }
        Map<Case, List<Double>> measured = new InTurns(
                        warmUp, part.slice(), part.rounds(), JVM, folder, line -> say(part.name(), line))
                .measure(part.forks(), part.needsPostgres() ? servers::newSite : Servers::nowhere);
        Map<String, List<Double>> ofPart = new LinkedHashMap<>();
        for (Map.Entry<Case, List<Double>> each : measured.entrySet()) {
            Case what = each.getKey();
            ofPart.put(what.toString(), each.getValue());
            keepLatencies(part, what, new Latencies(folder).of(what));
            Map<String, Long> bytes = new Sizes(folder).of(what);
            if (!bytes.isEmpty()) {
                sizes.put(what.toString(), bytes);
            }
        }
        rates.put(part.name(), ofPart);
    }

    private void keepLatencies(Part part, Case what, List<Histogram> rounds) {
        if (what.load() == Case.Load.FULL || rounds.isEmpty()) {
            return;
        }
        keepPercentiles(part.name(), what.toString(), rounds);
    }

    private void keepPercentiles(String part, String what, List<Histogram> rounds) {
        Map<String, List<Double>> percentiles = new LinkedHashMap<>();
        for (double percentile : PERCENTILES) {
            percentiles.put(
                    "%s".formatted(percentile).replaceAll("\\.0$", ""),
                    rounds.stream()
                            .map(round -> round.getValueAtPercentile(percentile) / 1e6)
                            .toList());
        }
        latencies.computeIfAbsent(part, name -> new LinkedHashMap<>()).put(what, percentiles);
    }

    private void say(String part, String line) {
        System.out.printf("%4d s  %s: %s%n", TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - start), part, line);
    }
}
