package io.onceflux.benchmarks.report;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ReportTest {

    @TempDir
    Path folder;

    @Test
    void aRatioIsTakenRoundByRoundAndThenItsMedian() throws IOException {
        JsonNode summary = summaryOf(measured(Map.of(
                "database",
                Map.of("jdbc", List.of(1_000.0, 2_000.0, 4_000.0), "per-message", List.of(900.0, 1_000.0, 3_600.0)))));
        assertThat(summary.get("per_message_to_jdbc").asDouble()).isEqualTo(0.9);
        JsonNode detail = summary.get("ratios").get("per_message_to_jdbc");
        assertThat(detail.get("min").asDouble()).isEqualTo(0.5);
        assertThat(detail.get("max").asDouble()).isEqualTo(0.9);
        assertThat(detail.get("met").asBoolean()).isTrue();
    }

    @Test
    void overheadIsTimeWithTheClaimToTimeWithout() throws IOException {
        JsonNode summary = summaryOf(measured(
                Map.of("database", Map.of("grouped", List.of(1_000.0), "grouped/without-claim", List.of(1_500.0)))));
        assertThat(summary.get("claim_overhead_grouped").asDouble()).isEqualTo(1.5);
        assertThat(summary.get("ratios")
                        .get("claim_overhead_grouped")
                        .get("met")
                        .asBoolean())
                .isFalse();
    }

    @Test
    void whatWasNotMeasuredIsNullAndNotARatioOfTwoParts() throws IOException {
        Measurements measured = measured(
                Map.of("database", Map.of("jdbc", List.of(1_000.0)), "lanes", Map.of("per-message", List.of(900.0))));
        assertThat(summaryOf(measured).get("per_message_to_jdbc").isNull()).isTrue();
        assertThat(Files.readString(folder.resolve("report.md"))).contains("not measured");
    }

    @Test
    void everyRatioThatIsAskedForIsInTheSummary() throws IOException {
        assertThat(summaryOf(measured(Map.of())).fieldNames())
                .toIterable()
                .contains(
                        "per_message_to_jdbc",
                        "grouped_to_jdbc",
                        "set_based_to_jdbc",
                        "claim_overhead_per_message",
                        "claim_overhead_grouped",
                        "claim_overhead_set_based",
                        "pipeline_only_per_second",
                        "rabbit_per_message_to_spring_amqp",
                        "rabbit_grouped_to_spring_amqp",
                        "rabbit_set_based_to_spring_amqp",
                        "recent_keys_to_database_duplicates",
                        "half_duplicates_grouped_to_spring_amqp",
                        "p99_half_load_grouped_to_jdbc");
    }

    @Test
    void latenciesAreComparedByTheirNinetyNinthPercentile() throws IOException {
        Measurements measured = new Measurements(
                Map.of(),
                false,
                Map.of(),
                Map.of(
                        "latency",
                        Map.of(
                                "jdbc/half-load", Map.of("99", List.of(4.0)),
                                "grouped/half-load-of-jdbc", Map.of("99", List.of(5.0)))),
                Map.of(),
                List.of(),
                Map.of());
        assertThat(summaryOf(measured).get("p99_half_load_grouped_to_jdbc").asDouble())
                .isEqualTo(1.25);
    }

    @Test
    void thePageHasAChartOfEveryPartAndNeedsNothingElse() throws IOException {
        Measurements measured = new Measurements(
                Map.of("Processor", "2 x <fast>"),
                true,
                Map.of(
                        "database", Map.of("jdbc", List.of(1_000.0)),
                        "duplicates", Map.of("per-message/duplicates=50", List.of(1_000.0)),
                        "lanes", Map.of("grouped/lanes=1/batch=8", List.of(1_000.0)),
                        "scale", Map.of("kafka-grouped/processes=4", List.of(9_000.0)),
                        "table", Map.of("claims/rows=1000000", List.of(90_000.0))),
                Map.of("latency", Map.of("jdbc/half-load", Map.of("50", List.of(1.0), "99", List.of(4.0)))),
                Map.of("claims/rows=1000000", Map.of("table", 65_000_000L, "index", 56_000_000L)),
                List.of(9_000_000L, 9_100_000L),
                Map.of("kafka-grouped/processes=4", Map.of("messages", 130_000L, "duplicates", 17L)));
        new Report(measured).write(folder);
        String page = Files.readString(folder.resolve("report.html"));
        assertThat(page)
                .contains(
                        "<svg", "JDBC loop", Report.BUSY, "2 x &lt;fast&gt;", "65.0 MB", "9.1 MB", "4 processes", "17")
                .doesNotContain("src=", "href=\"http");
        assertThat(page.split("<svg", -1)).hasSizeGreaterThan(5);
        assertThat(folder.resolve("database.svg")).exists();
        assertThat(Files.readString(folder.resolve("report.md")))
                .contains("![From memory into PostgreSQL](database.svg)");
    }

    @Test
    void whatWasMeasuredIsReadAsItWasWritten() throws IOException {
        Measurements measured = measured(Map.of("database", Map.of("jdbc", List.of(1.5))));
        measured.write(folder.resolve("measurements.json"));
        assertThat(Measurements.read(folder.resolve("measurements.json"))).isEqualTo(measured);
    }

    private static Measurements measured(Map<String, Map<String, List<Double>>> parts) {
        return new Measurements(Map.of(), false, parts, Map.of(), Map.of(), List.of(), Map.of());
    }

    private JsonNode summaryOf(Measurements measured) throws IOException {
        new Report(measured).write(folder);
        return new ObjectMapper().readTree(folder.resolve("summary.json").toFile());
    }
}
