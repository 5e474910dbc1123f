package io.onceflux.benchmarks.report;

import io.onceflux.benchmarks.report.Tables.Table;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Writes {@code report.html}, {@code report.md} with a picture for each chart, and {@code summary.json}. */
public final class Report {

    static final String HOW_TO_READ = """
            Every number is the median of its rounds, with the least and the most of them beside it. Cases that are compared are in \
            one part: they live side by side, each in a JVM of its own, and take turns of some seconds, so that whatever the \
            machine does meanwhile happens to all of them. A ratio is taken round by round, and then its median. Differences that \
            are smaller than the spread mean nothing. A message is one claim, one UPDATE of a balance and one INSERT into a ledger; \
            grey bars are what OnceFlux is compared with. At the end the ledger of each case was compared with the messages counted: \
            a case that loses or doubles one fails the run. All figures are of this machine, where database, broker and client share \
            the processors; on another the ratios differ too.""";

    static final String BUSY =
            "The machine had other work while this was measured. The figures show that the benchmarks run, and nothing else.";

    private final Measurements measured;

    public Report(Measurements measured) {
        this.measured = measured;
    }

    public void write(Path folder) throws IOException {
        Files.createDirectories(folder);
        Map<String, String> charts = Charts.of(measured);
        for (Map.Entry<String, String> chart : charts.entrySet()) {
            Files.writeString(folder.resolve(chart.getKey() + ".svg"), chart.getValue());
        }
        List<Section> sections = sections(charts);
        Files.writeString(folder.resolve("report.md"), new Markdown(measured.busy()).page(sections));
        Files.writeString(folder.resolve("report.html"), new Html(measured.busy(), charts).page(sections));
        Summary.write(measured, folder.resolve("summary.json"));
    }

    /** A heading, a picture by the name of its chart or none, and tables. */
    record Section(String title, List<String> charts, List<Table> tables) {}

    private List<Section> sections(Map<String, String> charts) {
        List<Section> sections = new ArrayList<>();
        sections.add(new Section("Summary", List.of(), List.of(Tables.ratios(measured))));
        for (String part : measured.parts().keySet()) {
            List<Table> tables = new ArrayList<>(List.of(Tables.part(measured, part)));
            if (measured.latencies().containsKey(part)) {
                tables.add(Tables.latency(measured, part));
            }
            if (part.equals("table")) {
                tables.add(Tables.sizes(measured));
            }
            if (part.equals("scale")) {
                tables.add(Tables.duplicates(measured));
            }
            List<String> pictures = List.of(part, part + "-latency").stream()
                    .filter(charts::containsKey)
                    .toList();
            sections.add(new Section(Titles.ofPart(part), pictures, tables));
        }
        if (!measured.heap().isEmpty()) {
            sections.add(new Section("Distinct keys and memory", List.of("memory"), List.of(Tables.heap(measured))));
        }
        sections.add(new Section("Machine and versions", List.of(), List.of(Tables.conditions(measured))));
        return sections;
    }
}
