package io.onceflux.rabbit;

import io.onceflux.InvalidSetupException;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * How a queue and its dead-letter queue are declared: durable, and the queue with the dead-letter queue as the place for
 * messages that the broker itself gives up, so that it does not drop them.
 *
 * @param type the broker's queue type
 * @param deliveryLimit how many times a quorum queue delivers a message before the broker gives it up; null for the broker's
 *     own default
 */
public record QueueDeclaration(Type type, @Nullable Integer deliveryLimit) {

    /** The broker's queue types. */
    public enum Type {
        /** On one node. */
        CLASSIC,
        /** Replicated. */
        QUORUM
    }

    /** Checks the limit. */
    public QueueDeclaration {
        Checked.present("type", type);
        if (deliveryLimit != null && (type != Type.QUORUM || deliveryLimit < 1)) {
            throw new InvalidSetupException(
                    "deliveryLimit must be at least 1, and is for quorum queues only, but is " + deliveryLimit);
        }
    }

    /** Durable classic queues. */
    public static QueueDeclaration classic() {
        return new QueueDeclaration(Type.CLASSIC, null);
    }

    /**
     * Quorum queues with a delivery limit. It should be well above the failures of infrastructure and the stops that are expected
     * while a message waits: each stop of a consumer, and each loss of its connection, costs every message that had been
     * prefetched one delivery, whether its turn had come or not. Six restarts with a limit of 3 made dead letters of 42 among 50
     * waiting messages. A small {@link RabbitOptions#prefetch} makes it fewer.
     */
    public static QueueDeclaration quorum(int deliveryLimit) {
        return new QueueDeclaration(Type.QUORUM, deliveryLimit);
    }

    Map<String, Object> queueArguments(String deadLetterExchange, String deadLetterRoutingKey) {
        Map<String, Object> arguments = deadLetterQueueArguments();
        arguments.put("x-dead-letter-exchange", deadLetterExchange);
        arguments.put("x-dead-letter-routing-key", deadLetterRoutingKey);
        if (deliveryLimit != null) {
            arguments.put("x-delivery-limit", deliveryLimit);
        }
        return arguments;
    }

    Map<String, Object> deadLetterQueueArguments() {
        Map<String, Object> arguments = new HashMap<>();
        if (type == Type.QUORUM) {
            arguments.put("x-queue-type", "quorum");
        }
        return arguments;
    }
}
