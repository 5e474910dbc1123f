package io.onceflux.benchmarks.report;

import io.onceflux.benchmarks.report.Report.Section;
import io.onceflux.benchmarks.report.Tables.Table;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** The report as one page that needs nothing else. */
record Html(boolean busy, Map<String, String> charts) {

    private static final String STYLE = """
            body { font: 15px/1.5 system-ui, sans-serif; color: #222b38; max-width: 960px; margin: 2rem auto; padding: 0 1rem }
            h1 { margin-bottom: .3rem } h2 { margin-top: 2.5rem; border-bottom: 2px solid #1f6fb5; padding-bottom: .2rem }
            table { border-collapse: collapse; margin: 1rem 0; width: 100% } th { text-align: left; color: #5a6675 }
            td, th { padding: .3rem .7rem; border-bottom: 1px solid #dde2e8; vertical-align: top }
            .busy { background: #fdf0e4; border-left: 4px solid #e07b24; padding: .6rem 1rem }
            .yes { color: #2a7d5f; font-weight: 600 } .no { color: #c2394a; font-weight: 600 }
            svg { max-width: 100%; height: auto }
            """;

    String page(List<Section> sections) {
        return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>OnceFlux: benchmarks</title>\n<style>\n"
                + STYLE
                + "</style>\n</head>\n<body>\n<h1>OnceFlux: benchmarks</h1>\n"
                + (busy ? "<p class=\"busy\">" + Report.BUSY + "</p>\n" : "")
                + "<p>" + escaped(Report.HOW_TO_READ) + "</p>\n"
                + sections.stream().map(this::section).collect(Collectors.joining())
                + "</body>\n</html>\n";
    }

    private String section(Section section) {
        return "<h2>" + escaped(section.title()) + "</h2>\n"
                + section.charts().stream().map(charts::get).collect(Collectors.joining("\n", "", "\n"))
                + section.tables().stream().map(Html::table).collect(Collectors.joining());
    }

    private static String table(Table table) {
        return "<table>\n"
                + row(table.rows().get(0), "th")
                + table.rows().stream().skip(1).map(row -> row(row, "td")).collect(Collectors.joining())
                + "</table>\n";
    }

    private static String row(List<String> cells, String tag) {
        return cells.stream()
                .map(cell -> "<%s%s>%s</%s>"
                        .formatted(
                                tag,
                                cell.equals("yes") || cell.equals("no") ? " class=\"" + cell + "\"" : "",
                                escaped(cell),
                                tag))
                .collect(Collectors.joining("", "<tr>", "</tr>\n"));
    }

    private static String escaped(String text) {
        return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;");
    }
}
