package io.onceflux.benchmarks.variant;

import java.util.Locale;

/** The ways that are compared, with how many transactions are open side by side and how many messages are in one. */
public enum Way {
    /** A blocking loop over JDBC. */
    JDBC(8, 1),
    /** Claim and effect in Spring's reactive transaction, without OnceFlux. */
    BY_HAND_PER_MESSAGE(8, 1),
    BY_HAND_GROUPED(2, 256),
    BY_HAND_SET_BASED(4, 512),
    /** OnceFlux from memory into the database: a transaction a message. */
    PER_MESSAGE(8, 1),
    /** A transaction for a group of messages, the effect of each by itself. */
    GROUPED(2, 256),
    /** A transaction for a group of messages, one effect for all. */
    SET_BASED(4, 512),
    /** OnceFlux alone: source, claims and connections in memory, no effect. */
    PIPELINE_PER_MESSAGE(8, 1),
    PIPELINE(8, 256),
    /** From the broker into nothing, with its own client. */
    RABBIT_BARE(4, 512),
    /** The listener that most services have today. */
    SPRING_AMQP(8, 1),
    /** OnceFlux from the broker into the database. */
    RABBIT_PER_MESSAGE(8, 1),
    RABBIT_GROUPED(2, 256),
    RABBIT_SET_BASED(4, 512),
    KAFKA_PER_MESSAGE(8, 1),
    KAFKA_GROUPED(2, 256),
    KAFKA_SET_BASED(4, 512),
    /** The same with a row for each partition in place of one for each message. */
    KAFKA_FENCED(4, 512),
    /** Claims alone, many a statement and transaction. */
    CLAIMS(2, 100);

    private final int lanes;
    private final int batch;

    Way(int lanes, int batch) {
        this.lanes = lanes;
        this.batch = batch;
    }

    int lanes() {
        return lanes;
    }

    int batch() {
        return batch;
    }

    public boolean needsRabbit() {
        return this == SPRING_AMQP || name().startsWith("RABBIT");
    }

    public boolean needsKafka() {
        return name().startsWith("KAFKA");
    }

    public boolean isPipelineAlone() {
        return name().startsWith("PIPELINE");
    }

    Grouping grouping() {
        return switch (this) {
            case GROUPED, RABBIT_GROUPED, KAFKA_GROUPED, PIPELINE, BY_HAND_GROUPED -> Grouping.GROUPED;
            case SET_BASED, RABBIT_SET_BASED, KAFKA_SET_BASED, KAFKA_FENCED, BY_HAND_SET_BASED -> Grouping.SET_BASED;
            default -> Grouping.PER_MESSAGE;
        };
    }

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    static Way of(String text) {
        return valueOf(text.toUpperCase(Locale.ROOT).replace('-', '_'));
    }
}
