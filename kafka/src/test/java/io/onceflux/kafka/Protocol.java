package io.onceflux.kafka;

import java.util.Map;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;

/** The ways in which a group shares its partitions. */
enum Protocol {
    /** Everything is taken from everybody, then given out again. */
    EAGER,
    /** Only what moves is taken. */
    COOPERATIVE,
    /** The broker decides. */
    CONSUMER;

    /** With times that are short; those of {@link #CONSUMER} are the broker's. */
    Map<String, Object> settings() {
        return switch (this) {
            case EAGER -> classic(RangeAssignor.class);
            case COOPERATIVE -> classic(CooperativeStickyAssignor.class);
            case CONSUMER -> Map.of("group.protocol", "consumer");
        };
    }

    private static Map<String, Object> classic(Class<?> assignor) {
        return Map.of(
                "partition.assignment.strategy", assignor.getName(),
                "session.timeout.ms", 6_000,
                "heartbeat.interval.ms", 500);
    }
}
