package io.onceflux.benchmarks;

import static java.time.Duration.ofMillis;
import static java.time.Duration.ofSeconds;

import io.onceflux.benchmarks.turns.Fork;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * What is measured, in which order.
 *
 * @param parts one after the other; what is compared is in one part
 * @param millionsOfKeys how many million distinct keys go through a small heap; 0 for none
 * @param scaleRounds how often 1, 2 and 4 processes consume a topic; 0 for never
 * @param relayRounds how often 1, 2 and 4 relays work off an outbox; 0 for never
 * @param dropRounds how often the claims of a day are removed from a table of {@code claims}, in partitions and not; 0 for never
 * @param claims how many are in that table
 */
record Plan(List<Part> parts, int millionsOfKeys, int scaleRounds, int relayRounds, int dropRounds, long claims) {

    static final String SMALL_HEAP = "memory";
    static final String SCALE_OUT = "scale";
    static final String RELAYS = "relay";
    static final String DROPS = "partitions";

    Plan {
        parts = List.copyOf(parts);
    }

    /** As much as fits into six minutes on two cores: every ratio of the summary, with a short slice. */
    static Plan quick() {
        return new Plan(
                List.of(
                        new Part(
                                "database",
                                List.of(
                                        Fork.of("jdbc", "jdbc/half-load"),
                                        Fork.of(
                                                "per-message",
                                                "per-message/without-claim",
                                                "per-message/duplicates=99",
                                                "per-message/duplicates=99/recent-keys"),
                                        Fork.of(
                                                "grouped",
                                                "grouped/without-claim",
                                                "grouped/half-load",
                                                "grouped/half-load-of-jdbc"),
                                        Fork.of("set-based", "set-based/without-claim"),
                                        Fork.of("pipeline", "pipeline-per-message")),
                                3,
                                ofMillis(1_500)),
                        new Part("rabbit", rabbit(), 3, ofMillis(1_500))),
                0,
                0,
                0,
                0,
                0);
    }

    static Plan full() {
        return new Plan(
                List.of(
                        new Part(
                                "database",
                                List.of(
                                        Fork.of("jdbc", "jdbc/without-claim"),
                                        Fork.of("per-message", "per-message/without-claim"),
                                        Fork.of("grouped", "grouped/without-claim"),
                                        Fork.of("set-based", "set-based/without-claim"),
                                        Fork.of("by-hand-per-message", "by-hand-per-message/without-claim"),
                                        Fork.of("by-hand-grouped", "by-hand-grouped/without-claim"),
                                        Fork.of("by-hand-set-based", "by-hand-set-based/without-claim")),
                                7,
                                ofSeconds(5)),
                        new Part("rabbit", rabbit(), 7, ofSeconds(4)),
                        new Part(
                                "kafka",
                                List.of(
                                        Fork.of("kafka-per-message"),
                                        Fork.of("kafka-grouped"),
                                        Fork.of("kafka-set-based", "kafka-fenced")),
                                7,
                                ofSeconds(4)),
                        new Part(
                                "pipeline",
                                List.of(Fork.of("pipeline"), Fork.of("pipeline-per-message")),
                                7,
                                ofSeconds(5)),
                        new Part(
                                "latency",
                                List.of(
                                        Fork.of("jdbc", "jdbc/half-load"),
                                        Fork.of(
                                                "per-message",
                                                "per-message/half-load",
                                                "per-message/half-load-of-jdbc"),
                                        Fork.of("grouped", "grouped/half-load", "grouped/half-load-of-jdbc")),
                                5,
                                ofSeconds(8)),
                        new Part(
                                "duplicates",
                                List.of(duplicates("jdbc"), duplicates("per-message"), duplicates("grouped")),
                                5,
                                ofSeconds(3)),
                        new Part(
                                "lanes",
                                List.of(
                                        Fork.of("per-message/lanes=1", "per-message/lanes=4", "per-message/lanes=16"),
                                        Fork.of(Stream.of(1, 2, 4, 16)
                                                .flatMap(lanes -> Stream.of(8, 64, 512)
                                                        .map(batch ->
                                                                "grouped/lanes=%d/batch=%d".formatted(lanes, batch)))
                                                .toArray(String[]::new))),
                                5,
                                ofSeconds(3)),
                        new Part(
                                "hot-keys",
                                List.of(hot("per-message"), hot("grouped"), hot("set-based")),
                                5,
                                ofSeconds(3)),
                        new Part(
                                "table",
                                List.of(Fork.of("claims/rows=1000000", "claims/rows=10000000", "claims/rows=50000000")),
                                7,
                                ofSeconds(5)),
                        new Part(
                                "retention",
                                List.of(whileOldClaimsAreRemoved("per-message"), whileOldClaimsAreRemoved("grouped")),
                                5,
                                ofSeconds(8))),
                10,
                3,
                3,
                3,
                50_000_000);
    }

    private static List<Fork> rabbit() {
        return List.of(
                Fork.of("spring-amqp", "spring-amqp/duplicates=50"),
                Fork.of("rabbit-per-message"),
                Fork.of("rabbit-grouped", "rabbit-grouped/duplicates=50"),
                Fork.of("rabbit-set-based"),
                Fork.of("rabbit-bare"));
    }

    /** Customers whose balance everybody changes. */
    private static Fork hot(String way) {
        return Fork.of(way, way + "/customers=10", way + "/customers=1", way + "/customers=1/unordered");
    }

    private static Fork whileOldClaimsAreRemoved(String way) {
        return Fork.of(way, way + "/half-load", way + "/old-claims=8000000/half-load");
    }

    private static Fork duplicates(String way) {
        return Fork.of(IntStream.of(0, 10, 50, 99)
                .mapToObj(percent -> way + "/duplicates=" + percent)
                .flatMap(one -> way.equals("jdbc") ? Stream.of(one) : Stream.of(one, one + "/recent-keys"))
                .toArray(String[]::new));
    }

    /** The parts of these names only. */
    Plan only(Set<String> names) {
        Set<String> known = parts.stream().map(Part::name).collect(Collectors.toSet());
        known.addAll(Set.of(SMALL_HEAP, SCALE_OUT, RELAYS, DROPS));
        if (!known.containsAll(names)) {
            throw new IllegalArgumentException(
                    "There are " + known.stream().sorted().toList() + ", not " + names);
        }
        return new Plan(
                parts.stream().filter(part -> names.contains(part.name())).toList(),
                names.contains(SMALL_HEAP) ? millionsOfKeys : 0,
                names.contains(SCALE_OUT) ? scaleRounds : 0,
                names.contains(RELAYS) ? relayRounds : 0,
                names.contains(DROPS) ? dropRounds : 0,
                claims);
    }

    /** With this many rounds and this slice everywhere, where they are given. */
    Plan with(@Nullable Integer rounds, @Nullable Duration slice) {
        if ((rounds != null && rounds < 1) || (slice != null && slice.toMillis() < 100)) {
            throw new IllegalArgumentException("There is at least 1 round, and a slice of at least 100 ms");
        }
        return new Plan(
                parts.stream()
                        .map(part -> new Part(
                                part.name(),
                                part.forks(),
                                rounds == null ? part.rounds() : rounds,
                                slice == null ? part.slice() : slice))
                        .toList(),
                millionsOfKeys,
                rounds == null || scaleRounds == 0 ? scaleRounds : rounds,
                rounds == null || relayRounds == 0 ? relayRounds : rounds,
                rounds == null || dropRounds == 0 ? dropRounds : rounds,
                claims);
    }
}
