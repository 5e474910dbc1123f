package io.onceflux.benchmarks;

import io.onceflux.benchmarks.turns.Fork;
import java.time.Duration;
import java.util.List;

/**
 * Cases that are compared with each other, and so run in turns.
 *
 * @param name as in {@code --only} and in the results
 * @param forks the JVMs, each with its cases
 * @param rounds how often each case runs
 * @param slice how long it runs in a round
 */
record Part(String name, List<Fork> forks, int rounds, Duration slice) {

    Part {
        forks = List.copyOf(forks);
    }

    boolean needsPostgres() {
        return forks.stream()
                .flatMap(fork -> fork.cases().stream())
                .anyMatch(one -> !one.way().isPipelineAlone());
    }

    boolean needsKafka() {
        return forks.stream()
                .flatMap(fork -> fork.cases().stream())
                .anyMatch(one -> one.way().needsKafka());
    }

    boolean needsRabbit() {
        return forks.stream()
                .flatMap(fork -> fork.cases().stream())
                .anyMatch(one -> one.way().needsRabbit());
    }
}
