package io.onceflux.benchmarks.turns;

import io.onceflux.benchmarks.variant.Case;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * A JVM of JMH that measures some cases, one an iteration: in this order, then backwards, and so on, so that none is always first.
 *
 * <p>Cases of the same code share a fork: they need the same warm-up.
 */
public record Fork(List<Case> cases) {

    private static final String SEPARATOR = " ";

    public Fork {
        cases = List.copyOf(cases);
    }

    public static Fork of(String... cases) {
        return new Fork(Stream.of(cases).map(Case::parse).toList());
    }

    /** As a parameter of JMH. */
    String asText() {
        return cases.stream().map(Case::toString).collect(Collectors.joining(SEPARATOR));
    }

    static Fork parse(String text) {
        return of(text.split(SEPARATOR, -1));
    }

    /** The case of an iteration, from 0. */
    Case caseOf(int iteration) {
        int at = iteration % cases.size();
        boolean backwards = iteration / cases.size() % 2 == 1;
        return cases.get(backwards ? cases.size() - 1 - at : at);
    }

    @Override
    public String toString() {
        return asText();
    }
}
