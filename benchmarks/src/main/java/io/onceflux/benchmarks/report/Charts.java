package io.onceflux.benchmarks.report;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import java.util.stream.Stream;

/** Which charts there are. */
final class Charts {

    private Charts() {}

    /** By file name. A chart of what was not measured is left out. */
    static Map<String, String> of(Measurements measured) {
        Map<String, String> charts = new LinkedHashMap<>();
        measured.parts().forEach((part, cases) -> chart(part, cases).ifPresentSvg(charts, part));
        measured.latencies().forEach((part, cases) -> latency(part, cases).ifPresentSvg(charts, part + "-latency"));
        if (!measured.heap().isEmpty()) {
            heap(measured.heap()).ifPresentSvg(charts, "memory");
        }
        return charts;
    }

    private static Chart chart(String part, Map<String, List<Double>> cases) {
        return switch (part) {
            case "duplicates" -> duplicates(cases);
            case "lanes" -> lanes(cases);
            case "table" -> bars(part, "claims a second", cases, what -> true);
            // A pipeline without a database is another order of magnitude, and half a load is no speed.
            default ->
                bars(
                        part,
                        "messages a second",
                        cases,
                        what -> !what.contains("half-load")
                                && (part.equals("pipeline") || !what.startsWith("pipeline")));
        };
    }

    private static Chart bars(String part, String unit, Map<String, List<Double>> cases, Predicate<String> wanted) {
        Map<String, Figure> bars = new LinkedHashMap<>();
        cases.forEach((what, rounds) ->
                Figure.of(rounds).filter(figure -> wanted.test(what)).ifPresent(figure -> bars.put(what, figure)));
        return Chart.bars(Titles.ofPart(part), unit, bars);
    }

    /** A line for each way and for where its duplicates are found. */
    private static Chart duplicates(Map<String, List<Double>> cases) {
        Map<String, Map<String, Figure>> lines = new LinkedHashMap<>();
        cases.forEach((what, rounds) -> {
            List<String> settings = List.of(what.split("/", -1));
            String share = find(settings, "duplicates", "0");
            String line = settings.get(0) + (settings.contains("recent-keys") ? "/recent-keys" : "");
            put(lines, Titles.of(line), share + " %", rounds);
        });
        return Chart.lines("Shares of duplicates", "share of duplicates", "messages a second", lines);
    }

    /** A line for each number of lanes, over the messages a transaction. */
    private static Chart lanes(Map<String, List<Double>> cases) {
        Map<String, Map<String, Figure>> lines = new LinkedHashMap<>();
        cases.forEach((what, rounds) -> {
            List<String> settings = List.of(what.split("/", -1));
            boolean perMessage = settings.get(0).equals("per-message");
            String lanes = find(settings, "lanes", perMessage ? "8" : "2");
            put(lines, lanes + " lanes", find(settings, "batch", perMessage ? "1" : "256"), rounds);
        });
        return Chart.lines(
                "Lanes and messages a transaction", "messages a transaction, at most", "messages a second", lines);
    }

    private static Chart latency(String part, Map<String, Map<String, List<Double>>> cases) {
        Map<String, Map<String, Figure>> lines = new LinkedHashMap<>();
        cases.forEach((what, percentiles) -> Stream.of("50", "90", "99", "99.9")
                .forEach(each -> put(lines, Titles.of(what), each + " %", percentiles.getOrDefault(each, List.of()))));
        return Chart.lines(
                switch (part) {
                    case "relay" -> "From append to arrival";
                    case "partitions" -> "A transaction with one claim";
                    default -> "Latency at half load";
                },
                "percentile",
                "milliseconds",
                lines);
    }

    private static Chart heap(List<Long> heap) {
        Map<String, Map<String, Figure>> lines = new LinkedHashMap<>();
        for (int i = 0; i < heap.size(); i++) {
            put(lines, "heap after a collection", Integer.toString(i + 1), List.of(heap.get(i) / 1e6));
        }
        return Chart.lines("Distinct keys and memory", "million distinct keys so far", "MB", lines);
    }

    private static void put(Map<String, Map<String, Figure>> lines, String line, String point, List<Double> rounds) {
        Figure.of(rounds)
                .ifPresent(figure ->
                        lines.computeIfAbsent(line, l -> new LinkedHashMap<>()).put(point, figure));
    }

    private static String find(List<String> settings, String name, String otherwise) {
        return settings.stream()
                .filter(each -> each.startsWith(name + "="))
                .map(Titles::valueOf)
                .findFirst()
                .orElse(otherwise);
    }
}
