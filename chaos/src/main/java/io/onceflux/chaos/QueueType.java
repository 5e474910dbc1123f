package io.onceflux.chaos;

import java.util.Map;

/** What keeps the messages. */
enum QueueType {
    CLASSIC,

    /**
     * With the delivery limit that RabbitMQ 4 has by itself: what the broker gives up goes to the dead letters, where the checker
     * finds it to be no poison.
     */
    QUORUM,

    /** A topic of Kafka with 18 partitions. */
    KAFKA;

    Map<String, Object> arguments() {
        return this == QUORUM ? Map.of("x-queue-type", "quorum", "x-delivery-limit", 20) : Map.of();
    }
}
