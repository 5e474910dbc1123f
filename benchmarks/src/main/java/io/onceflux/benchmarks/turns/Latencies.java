package io.onceflux.benchmarks.turns;

import io.onceflux.benchmarks.variant.Case;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.HdrHistogram.EncodableHistogram;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.HistogramLogReader;
import org.HdrHistogram.HistogramLogWriter;

/** Latencies of the cases, a file of HdrHistogram's log format for each round. */
public final class Latencies {

    private final Path folder;

    public Latencies(Path folder) {
        this.folder = folder;
    }

    void keep(Case what, int round, Histogram latencies) throws IOException {
        Files.createDirectories(folder);
        try (PrintStream file =
                new PrintStream(folder.resolve(fileName(what, round)).toFile())) {
            HistogramLogWriter writer = new HistogramLogWriter(file);
            writer.outputLogFormatVersion();
            writer.outputLegend();
            writer.outputIntervalHistogram(latencies);
        }
    }

    /** Those of each round, in order; empty if the case was not measured. */
    public List<Histogram> of(Case what) throws IOException {
        List<Histogram> rounds = new ArrayList<>();
        for (int round = 0; Files.exists(folder.resolve(fileName(what, round))); round++) {
            try (HistogramLogReader reader =
                    new HistogramLogReader(folder.resolve(fileName(what, round)).toFile())) {
                for (EncodableHistogram each = reader.nextIntervalHistogram();
                        each != null;
                        each = reader.nextIntervalHistogram()) {
                    rounds.add((Histogram) each);
                }
            }
        }
        return rounds;
    }

    /** All rounds together. */
    public static Histogram together(List<Histogram> rounds) {
        Histogram sum = new Histogram(3);
        Stream.of(rounds.toArray(Histogram[]::new)).forEach(sum::add);
        return sum;
    }

    private static String fileName(Case what, int round) {
        return "latency-" + what.toString().replace('/', '.') + "-" + round + ".hlog";
    }
}
