package io.onceflux.examples.demo;

import io.onceflux.examples.loyalty.OrderCompleted;
import java.io.IOException;
import java.util.List;
import java.util.Map;

/**
 * Where the orders of one service come from, as the demo sees it: it publishes as the shop does, and looks how far the service is. Blocks.
 * Gone when it is closed. Its text is what it is: a queue, a topic.
 */
interface Broker extends AutoCloseable {

    /** The system properties by which the service finds it. */
    Map<String, String> settings(Contender contender);

    /** Publishes in this order, and returns when the broker has confirmed all. */
    void publish(List<OrderCompleted> orders) throws Exception;

    /** How many messages are not done. */
    long backlog() throws Exception;

    long deadLetters() throws Exception;

    /** How many instances consume. */
    int consumers() throws Exception;

    /** Whether it can be read again from its start. */
    boolean keepsWhatIsDone();

    /** Has it read again from its start; only while nobody consumes. */
    void rewind() throws Exception;

    @Override
    void close() throws IOException;
}
