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
     * waiting messages. A small {@link RabbitOptions#prefetch} makes it fewer. The queue of dead letters has no such limit.
     */
    public static QueueDeclaration quorum(int deliveryLimit) {
        return new QueueDeclaration(Type.QUORUM, deliveryLimit);
    }

    Map<String, Object> queueArguments(String deadLetterExchange, String deadLetterRoutingKey) {
        Map<String, Object> arguments = deadLetterQueueArguments(false);
        arguments.put("x-dead-letter-exchange", deadLetterExchange);
        arguments.put("x-dead-letter-routing-key", deadLetterRoutingKey);
        if (deliveryLimit != null) {
            arguments.put("x-delivery-limit", deliveryLimit);
        }
        return arguments;
    }

    /**
     * A quorum queue of dead letters has no delivery limit: each look at a letter is a delivery, and there is no place for letters of
     * dead letters.
     *
     * @param limitByDefault whether the broker has a limit unless it is told otherwise, as RabbitMQ has from 4.0 on. Earlier ones
     *     have none, and would take -1 for one: the first letter that is put back would be gone
     */
    Map<String, Object> deadLetterQueueArguments(boolean limitByDefault) {
        Map<String, Object> arguments = new HashMap<>();
        if (type == Type.QUORUM) {
            arguments.put("x-queue-type", "quorum");
            if (limitByDefault) {
                arguments.put("x-delivery-limit", -1);
            }
        }
        return arguments;
    }
}
