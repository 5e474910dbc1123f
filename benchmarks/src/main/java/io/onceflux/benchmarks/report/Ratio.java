package io.onceflux.benchmarks.report;

import java.util.List;
import java.util.Locale;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** The figures of the summary: what is compared with what, and how good it is meant to be. */
public enum Ratio {
    PER_MESSAGE_TO_JDBC(
            Kind.RATE, "per-message", "jdbc", 0.85, null, "a transaction a message, to a blocking JDBC loop"),
    GROUPED_TO_JDBC(Kind.RATE, "grouped", "jdbc", 4.0, null, "group commit with the same effect, to the JDBC loop"),
    SET_BASED_TO_JDBC(
            Kind.RATE, "set-based", "jdbc", 18.0, null, "group commit with one effect for all, to the JDBC loop"),
    CLAIM_OVERHEAD_PER_MESSAGE(
            Kind.TIME,
            "per-message",
            "per-message/without-claim",
            null,
            1.25,
            "time with the claim to without, a message a time"),
    CLAIM_OVERHEAD_GROUPED(Kind.TIME, "grouped", "grouped/without-claim", null, 1.15, "the same, grouped"),
    CLAIM_OVERHEAD_SET_BASED(Kind.TIME, "set-based", "set-based/without-claim", null, 1.35, "the same, set-based"),
    PIPELINE_ONLY_PER_SECOND(
            Kind.ABSOLUTE,
            "pipeline",
            "pipeline",
            1_000_000.0,
            null,
            "messages a second where everything else is in memory"),
    RABBIT_PER_MESSAGE_TO_SPRING_AMQP(
            Kind.RATE,
            "rabbit-per-message",
            "spring-amqp",
            1.2,
            null,
            "from RabbitMQ, to a @RabbitListener with JdbcTemplate"),
    RABBIT_GROUPED_TO_SPRING_AMQP(Kind.RATE, "rabbit-grouped", "spring-amqp", 4.0, null, "the same, grouped"),
    RABBIT_SET_BASED_TO_SPRING_AMQP(Kind.RATE, "rabbit-set-based", "spring-amqp", 12.0, null, "the same, set-based"),
    RECENT_KEYS_TO_DATABASE_DUPLICATES(
            Kind.RATE,
            "per-message/duplicates=99/recent-keys",
            "per-message/duplicates=99",
            null,
            null,
            "99 % duplicates found in memory, to found by the database"),
    HALF_DUPLICATES_GROUPED_TO_SPRING_AMQP(
            Kind.RATE,
            "rabbit-grouped/duplicates=50",
            "spring-amqp/duplicates=50",
            4.0,
            null,
            "from RabbitMQ, every other message a duplicate"),
    P99_HALF_LOAD_GROUPED_TO_JDBC(
            Kind.P99,
            "grouped/half-load-of-jdbc",
            "jdbc/half-load",
            null,
            1.5,
            "99th percentile of the latency, both at half of what the JDBC loop can take"),
    P99_OWN_HALF_LOAD_GROUPED_TO_JDBC(
            Kind.P99,
            "grouped/half-load",
            "jdbc/half-load",
            null,
            null,
            "the same, each at half of what it can take itself");

    /** What is divided by what. */
    enum Kind {
        /** Messages a second of the first by those of the second. */
        RATE,
        /** Time a message of the first by that of the second. */
        TIME,
        /** A latency of the first by that of the second. */
        P99,
        /** Messages a second of the first. */
        ABSOLUTE
    }

    private final Kind kind;
    private final String first;
    private final String second;
    private final @Nullable Double atLeast;
    private final @Nullable Double atMost;
    private final String meaning;

    Ratio(Kind kind, String first, String second, @Nullable Double atLeast, @Nullable Double atMost, String meaning) {
        this.kind = kind;
        this.first = first;
        this.second = second;
        this.atLeast = atLeast;
        this.atMost = atMost;
        this.meaning = meaning;
    }

    /** As in {@code summary.json}. */
    String key() {
        return name().toLowerCase(Locale.ROOT);
    }

    String meaning() {
        return meaning;
    }

    /** The cases that it is made of. */
    List<String> cases() {
        return List.of(first, second);
    }

    /** Empty if one of the two was not measured: nothing is made up for it. */
    Optional<Figure> in(Measurements measured) {
        return switch (kind) {
            case RATE ->
                measured.rates(first, second).flatMap(both -> Figure.of(both.get(0), both.get(1), (a, b) -> a / b));
            case TIME ->
                measured.rates(first, second).flatMap(both -> Figure.of(both.get(0), both.get(1), (a, b) -> b / a));
            case ABSOLUTE -> measured.rates(first).flatMap(one -> Figure.of(one.get(0)));
            case P99 ->
                measured.latencies("99", first, second)
                        .flatMap(both -> Figure.of(both.get(0), both.get(1), (a, b) -> a / b));
        };
    }

    String goal() {
        return atLeast != null
                ? "at least " + Format.number(atLeast)
                : atMost != null ? "at most " + Format.number(atMost) : "";
    }

    /** Whether the median is as good as it is meant to be; empty where there is no goal. */
    Optional<Boolean> isMet(Figure figure) {
        return atLeast != null
                ? Optional.of(figure.median() >= atLeast)
                : atMost != null ? Optional.of(figure.median() <= atMost) : Optional.empty();
    }
}
