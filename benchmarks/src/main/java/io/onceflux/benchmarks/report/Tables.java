package io.onceflux.benchmarks.report;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** The tables of the report, as rows of cells; how they look is up to who writes them. */
final class Tables {

    private Tables() {}

    /** The first row is the heading. */
    record Table(List<List<String>> rows) {}

    static Table ratios(Measurements measured) {
        List<List<String>> rows = new ArrayList<>();
        rows.add(List.of("figure", "what", "median", "min – max", "goal", "met"));
        for (Ratio ratio : Ratio.values()) {
            rows.add(ratio.in(measured)
                    .map(figure -> List.of(
                            ratio.key(),
                            ratio.meaning(),
                            Format.number(figure.median()),
                            Format.spread(figure),
                            ratio.goal(),
                            ratio.isMet(figure).map(met -> met ? "yes" : "no").orElse("")))
                    .orElse(List.of(ratio.key(), ratio.meaning(), "not measured", "", ratio.goal(), "")));
        }
        return new Table(rows);
    }

    static Table part(Measurements measured, String part) {
        List<List<String>> rows = new ArrayList<>();
        rows.add(List.of("case", "messages/s", "min – max", "rounds"));
        measured.parts()
                .getOrDefault(part, Map.of())
                .forEach((what, rounds) -> Figure.of(rounds)
                        .ifPresent(figure -> rows.add(List.of(
                                Titles.of(what),
                                Format.number(figure.median()),
                                Format.spread(figure),
                                Integer.toString(figure.rounds())))));
        return new Table(rows);
    }

    static Table latency(Measurements measured, String part) {
        List<List<String>> rows = new ArrayList<>();
        List<String> heading = new ArrayList<>(List.of("milliseconds"));
        List<String> percentiles = List.of("50", "90", "99", "99.9", "100");
        percentiles.forEach(each -> heading.add(each.equals("100") ? "max" : "p" + each));
        rows.add(heading);
        measured.latencies().getOrDefault(part, Map.of()).forEach((what, values) -> {
            List<String> row = new ArrayList<>(List.of(Titles.of(what)));
            percentiles.forEach(each -> row.add(Figure.of(values.getOrDefault(each, List.of()))
                    .map(figure -> Format.number(figure.median()) + " (" + Format.spread(figure) + ")")
                    .orElse("")));
            rows.add(row);
        });
        return new Table(rows);
    }

    static Table sizes(Measurements measured) {
        List<List<String>> rows = new ArrayList<>();
        rows.add(List.of("case", "table", "index"));
        measured.sizes()
                .forEach((what, sizes) -> rows.add(List.of(
                        Titles.of(what),
                        Format.megabytes(sizes.getOrDefault("table", 0L)),
                        Format.megabytes(sizes.getOrDefault("index", 0L)))));
        return new Table(rows);
    }

    /** What a group's change of members costs. */
    static Table duplicates(Measurements measured) {
        List<List<String>> rows = new ArrayList<>();
        rows.add(List.of("case", "messages in all rounds", "duplicates as one joined and one left, under load"));
        measured.counts()
                .forEach((what, counts) -> rows.add(List.of(
                        Titles.of(what),
                        Format.count(counts.getOrDefault("messages", 0L)),
                        Format.count(counts.getOrDefault("duplicates", 0L)))));
        return new Table(rows);
    }

    static Table heap(Measurements measured) {
        List<List<String>> rows = new ArrayList<>();
        rows.add(List.of("million distinct keys so far", "on the heap after a collection"));
        for (int i = 0; i < measured.heap().size(); i++) {
            rows.add(List.of(
                    Integer.toString(i + 1), Format.megabytes(measured.heap().get(i))));
        }
        return new Table(rows);
    }

    static Table conditions(Measurements measured) {
        List<List<String>> rows = new ArrayList<>();
        rows.add(List.of("", ""));
        measured.conditions().forEach((what, value) -> rows.add(List.of(what, value)));
        return new Table(rows);
    }
}
