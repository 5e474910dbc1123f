package io.onceflux.benchmarks.report;

import java.util.List;
import java.util.Optional;
import java.util.function.DoubleBinaryOperator;
import java.util.stream.IntStream;

/** A number that was measured some times: the middle one, and how far the others are from it. */
public record Figure(double median, double min, double max, int rounds) {

    static Optional<Figure> of(List<Double> rounds) {
        if (rounds.isEmpty()) {
            return Optional.empty();
        }
        double[] sorted =
                rounds.stream().mapToDouble(Double::doubleValue).sorted().toArray();
        int middle = sorted.length / 2;
        double median = sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
        return Optional.of(new Figure(median, sorted[0], sorted[sorted.length - 1], sorted.length));
    }

    /** Of two that took turns: round by round, because the machine was the same to both within a round only. */
    static Optional<Figure> of(List<Double> first, List<Double> second, DoubleBinaryOperator ratio) {
        return of(IntStream.range(0, Math.min(first.size(), second.size()))
                .mapToObj(round -> ratio.applyAsDouble(first.get(round), second.get(round)))
                .toList());
    }
}
