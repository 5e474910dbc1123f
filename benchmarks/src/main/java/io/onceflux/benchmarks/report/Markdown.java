package io.onceflux.benchmarks.report;

import io.onceflux.benchmarks.report.Report.Section;
import io.onceflux.benchmarks.report.Tables.Table;
import java.util.Collections;
import java.util.List;

/** The report as Markdown, with the charts as files beside it. */
record Markdown(boolean busy) {

    String page(List<Section> sections) {
        StringBuilder page = new StringBuilder("# OnceFlux: benchmarks\n\n");
        if (busy) {
            page.append("> ").append(Report.BUSY).append("\n\n");
        }
        page.append(Report.HOW_TO_READ).append('\n');
        for (Section section : sections) {
            page.append("\n## ").append(section.title()).append("\n");
            section.charts().forEach(chart -> page.append("\n![%s](%s.svg)\n".formatted(section.title(), chart)));
            section.tables().forEach(table -> page.append('\n').append(table(table)));
        }
        return page.toString();
    }

    private static String table(Table table) {
        StringBuilder text = new StringBuilder();
        List<String> heading = table.rows().get(0);
        text.append(row(heading));
        text.append(row(Collections.nCopies(heading.size(), "---")));
        table.rows().stream().skip(1).map(Markdown::row).forEach(text::append);
        return text.toString();
    }

    private static String row(List<String> cells) {
        return "| "
                + String.join(
                        " | ",
                        cells.stream().map(cell -> cell.replace("|", "\\|")).toList())
                + " |\n";
    }
}
