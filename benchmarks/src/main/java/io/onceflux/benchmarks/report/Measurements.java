package io.onceflux.benchmarks.report;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * All that was measured, as it is kept between measuring and reporting.
 *
 * @param conditions what the machine, the servers and the libraries were, and the command; to be shown as they are, in order
 * @param busy whether the machine had other work, so that the figures are not to be shown to anybody
 * @param parts messages a second, by part and case, a number for each round
 * @param latencies milliseconds, by part, case and percentile ("50", "99.9"), a number for each round
 * @param sizes bytes, by case and what
 * @param heap bytes on the heap after so many million distinct keys
 * @param counts of what happened, by case and what
 */
public record Measurements(
        Map<String, String> conditions,
        boolean busy,
        Map<String, Map<String, List<Double>>> parts,
        Map<String, Map<String, Map<String, List<Double>>>> latencies,
        Map<String, Map<String, Long>> sizes,
        List<Long> heap,
        Map<String, Map<String, Long>> counts) {

    private static final ObjectMapper JSON = new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);

    public static Measurements read(Path file) throws IOException {
        return JSON.readValue(file.toFile(), Measurements.class);
    }

    public void write(Path file) throws IOException {
        JSON.writeValue(file.toFile(), this);
    }

    /** The rates of these cases in the first part that has them all: what is in one part has taken turns. */
    Optional<List<List<Double>>> rates(String... cases) {
        return parts.values().stream()
                .filter(part -> part.keySet().containsAll(List.of(cases)))
                .findFirst()
                .map(part -> Stream.of(cases)
                        .map(each -> part.getOrDefault(each, List.of()))
                        .toList());
    }

    /** The same for a percentile of the latencies. */
    Optional<List<List<Double>>> latencies(String percentile, String... cases) {
        return latencies.values().stream()
                .filter(part -> part.keySet().containsAll(List.of(cases)))
                .findFirst()
                .map(part -> Stream.of(cases)
                        .map(each -> part.getOrDefault(each, Map.of()).getOrDefault(percentile, List.of()))
                        .toList());
    }
}
