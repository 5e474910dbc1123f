package io.onceflux.examples;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import io.onceflux.FailureKind;
import io.onceflux.IdempotentConsumer;
import io.onceflux.Retention;
import io.onceflux.micrometer.ConsumerMeters;
import io.onceflux.micrometer.RelayMeters;
import io.onceflux.micrometer.RetentionMeters;
import io.onceflux.outbox.Outbox;
import io.onceflux.outbox.Relay;
import io.onceflux.postgres.ClaimTable;
import io.onceflux.postgres.OutboxTable;
import io.r2dbc.spi.ConnectionFactories;
import io.r2dbc.spi.ConnectionFactory;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.yaml.snakeyaml.LoaderOptions;
import org.yaml.snakeyaml.Yaml;
import org.yaml.snakeyaml.constructor.SafeConstructor;
import reactor.core.publisher.Mono;

/** The dashboard and the alerts ask for meters and tags that are there. */
class MonitoringTest {

    private static final Path MONITORING = Path.of("..", "docs", "monitoring");

    /** A series of Prometheus in an expression, with what stands in its braces. */
    private static final Pattern SERIES = Pattern.compile("\\b(onceflux_\\w+)(?:\\{([^}]*)})?");

    private static final Pattern SELECTED = Pattern.compile("(\\w+)\\s*(?:=~|!~|!=|=)");
    private static final Pattern GROUPED = Pattern.compile("\\bby \\(([^)]*)\\)");
    private static final Pattern SHOWN = Pattern.compile("\\{\\{\\s*(?:\\$labels\\.)?(\\w+)\\s*}}");

    private final Map<String, Set<String>> labels = series();

    /** What a service has, by series: the labels. */
    private static Map<String, Set<String>> series() {
        ConnectionFactory connections = ConnectionFactories.get("r2dbc:postgresql://nobody@localhost/never-asked");
        PrometheusMeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
        IdempotentConsumer<String> consumer = IdempotentConsumer.<String>named("loyalty")
                .identifiedByMessageId()
                .effect((payload, db) -> Mono.empty())
                .listener(ConsumerMeters.in(registry))
                .build(connections);
        Relay relay = Relay.of(Outbox.in(OutboxTable.outbox()))
                .to("mail", message -> Mono.empty())
                .listener(RelayMeters.in(registry))
                .build(connections);
        Retention retention =
                Retention.of(ClaimTable.processedMessages(), Duration.ofDays(7)).listener(RetentionMeters.in(registry));
        assertThat(List.of(consumer, relay, retention)).doesNotContainNull();

        Map<String, Set<String>> series = new TreeMap<>();
        for (String line : registry.scrape().lines().toList()) {
            Matcher found = SERIES.matcher(line);
            if (!line.startsWith("#") && found.find()) {
                series.computeIfAbsent(found.group(1), none -> new TreeSet<>()).addAll(selected(found.group(2)));
            }
        }
        return series;
    }

    private static Set<String> selected(String inBraces) {
        Set<String> names = new HashSet<>();
        if (inBraces != null) {
            SELECTED.matcher(inBraces).results().forEach(label -> names.add(label.group(1)));
        }
        return names;
    }

    private void assertAsksForWhatIsThere(String expression, String shown) {
        Matcher found = SERIES.matcher(expression);
        Set<String> known = new HashSet<>();
        while (found.find()) {
            String name = found.group(1);
            assertThat(labels).as(expression).containsKey(name);
            assertThat(labels.get(name)).as(expression).containsAll(selected(found.group(2)));
            known.addAll(labels.get(name));
        }
        assertThat(known).as("labels of %s", expression).isNotEmpty();
        Set<String> grouped = new HashSet<>();
        GROUPED.matcher(expression)
                .results()
                .forEach(by -> grouped.addAll(List.of(by.group(1).split("\\s*,\\s*"))));
        assertThat(known).as(expression).containsAll(grouped);
        SHOWN.matcher(shown)
                .results()
                .forEach(label -> assertThat(grouped)
                        .as("%s shows %s", expression, label.group())
                        .contains(label.group(1)));
    }

    @Test
    void theDashboardAsksForWhatIsThere() throws IOException {
        JsonNode dashboard = new ObjectMapper()
                .readTree(MONITORING.resolve("grafana-dashboard.json").toFile());
        List<String> expressions = new ArrayList<>();
        for (JsonNode panel : dashboard.get("panels")) {
            for (JsonNode target : panel.path("targets")) {
                String expression = target.get("expr").asText();
                assertAsksForWhatIsThere(expression, target.get("legendFormat").asText());
                expressions.add(expression);
            }
        }
        assertThat(expressions).hasSizeGreaterThan(20);
        assertEveryMeterIsIn(String.join("\n", expressions));
    }

    /** By its name without what Prometheus makes of it. */
    private void assertEveryMeterIsIn(String expressions) {
        Set<String> meters = new TreeSet<>();
        labels.keySet().forEach(name -> meters.add(name.replaceAll("(_seconds)?_(bucket|count|sum|max|total)$", "")));
        assertThat(meters)
                .isNotEmpty()
                .allSatisfy(meter -> assertThat(expressions).contains(meter));
    }

    @Test
    void theAlertsAskForWhatIsThere() throws IOException {
        Map<String, List<Map<String, Object>>> rules = new Yaml(new SafeConstructor(new LoaderOptions()))
                .load(Files.readString(MONITORING.resolve("prometheus-alerts.yml")));
        List<String> alerts = new ArrayList<>();
        for (Map<String, Object> group : rules.get("groups")) {
            for (Object each : (List<?>) group.get("rules")) {
                Map<?, ?> rule = (Map<?, ?>) each;
                assertAsksForWhatIsThere(
                        (String) rule.get("expr"), rule.get("annotations").toString());
                alerts.add((String) rule.get("alert"));
            }
        }
        assertThat(alerts).hasSizeGreaterThan(5).doesNotHaveDuplicates();
    }

    @Test
    void kindsInTheAlertsAreKindsOfFailures() throws IOException {
        Matcher kinds = Pattern.compile("kind=\"(\\w+)\"")
                .matcher(Files.readString(MONITORING.resolve("prometheus-alerts.yml")));
        List<String> known = List.of(FailureKind.values()).stream()
                .map(kind -> kind.name().toLowerCase(Locale.ROOT))
                .toList();
        assertThat(kinds.results().map(kind -> kind.group(1)).toList())
                .isNotEmpty()
                .allSatisfy(kind -> assertThat(known).contains(kind));
    }
}
