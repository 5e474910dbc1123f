package io.onceflux.benchmarks.report;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import java.io.IOException;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * {@code summary.json}: each ratio by its name as a number, or null if it was not measured; its spread and goal under
 * {@code ratios}; every figure under {@code figures}, by part and case.
 */
final class Summary {

    private static final ObjectMapper JSON = new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);

    private Summary() {}

    static void write(Measurements measured, Path file) throws IOException {
        Map<String, Object> summary = new LinkedHashMap<>();
        Map<String, Object> ratios = new LinkedHashMap<>();
        for (Ratio ratio : Ratio.values()) {
            ratio.in(measured)
                    .ifPresentOrElse(
                            figure -> summary.put(ratio.key(), figure.median()), () -> putNull(summary, ratio));
            ratio.in(measured).ifPresent(figure -> ratios.put(ratio.key(), detail(ratio, figure)));
        }
        summary.put("busy_machine", measured.busy());
        summary.put("conditions", measured.conditions());
        summary.put("ratios", ratios);
        summary.put("figures", figures(measured));
        summary.put("latency_milliseconds", measured.latencies());
        summary.put("sizes_bytes", measured.sizes());
        summary.put("heap_bytes_by_million_keys", measured.heap());
        JSON.writeValue(file.toFile(), summary);
    }

    @SuppressWarnings("NullAway") // JSON has a null, and here it says something.
    private static void putNull(Map<String, Object> summary, Ratio ratio) {
        summary.put(ratio.key(), null);
    }

    private static Map<String, Object> detail(Ratio ratio, Figure figure) {
        Map<String, Object> detail = new LinkedHashMap<>();
        detail.put("median", figure.median());
        detail.put("min", figure.min());
        detail.put("max", figure.max());
        detail.put("rounds", figure.rounds());
        if (!ratio.goal().isEmpty()) {
            detail.put("goal", ratio.goal());
        }
        ratio.isMet(figure).ifPresent(met -> detail.put("met", met));
        return detail;
    }

    private static Map<String, Map<String, Figure>> figures(Measurements measured) {
        Map<String, Map<String, Figure>> figures = new LinkedHashMap<>();
        measured.parts().forEach((part, cases) -> {
            Map<String, Figure> ofPart = new LinkedHashMap<>();
            for (Map.Entry<String, List<Double>> each : cases.entrySet()) {
                Figure.of(each.getValue()).ifPresent(figure -> ofPart.put(each.getKey(), figure));
            }
            figures.put(part, ofPart);
        });
        return figures;
    }
}
