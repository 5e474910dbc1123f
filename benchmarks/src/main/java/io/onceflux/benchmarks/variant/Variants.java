package io.onceflux.benchmarks.variant;

import io.onceflux.benchmarks.scenario.Site;

/** Opens the variant of a case. */
public final class Variants {

    private Variants() {}

    /** With tables, connections and all, but without a message. */
    public static Variant open(Case what, Site site) {
        return switch (what.way()) {
            case JDBC -> new JdbcLoop(what, site);
            case BY_HAND_PER_MESSAGE, BY_HAND_GROUPED, BY_HAND_SET_BASED -> new ByHand(what, site);
            case PER_MESSAGE, GROUPED, SET_BASED -> FromMemory.intoDatabase(what, site);
            case PIPELINE_PER_MESSAGE, PIPELINE -> FromMemory.alone(what);
            case CLAIMS -> new ClaimsAlone(what, site);
            case RABBIT_BARE -> new BareRabbit(what, site);
            case SPRING_AMQP -> new SpringAmqp(what, site);
            case KAFKA_PER_MESSAGE, KAFKA_GROUPED, KAFKA_SET_BASED, KAFKA_FENCED -> new KafkaConsumer(what, site);
            case RABBIT_PER_MESSAGE, RABBIT_GROUPED, RABBIT_SET_BASED -> new RabbitConsumer(what, site);
        };
    }

    /** For a case that has nothing to do with a server. */
    public static Variant openAlone(Case what) {
        if (!what.way().isPipelineAlone()) {
            throw new IllegalArgumentException(what + " needs servers");
        }
        return FromMemory.alone(what);
    }
}
