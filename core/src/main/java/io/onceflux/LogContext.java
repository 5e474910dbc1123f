package io.onceflux;

import org.jspecify.annotations.Nullable;
import org.slf4j.MDC;

/**
 * What stands in SLF4J's MDC while OnceFlux logs something of a consumer. An effect's own lines have it too, where
 * {@link io.onceflux.micrometer.MessageObservations} observe the consumer and Reactor propagates its context to thread-locals.
 */
public final class LogContext {

    /** The consumer's name. */
    public static final String CONSUMER = "onceflux.consumer";

    /** The message's id, where the line is about one. */
    public static final String KEY = "onceflux.key";

    private LogContext() {}

    /** A text that others wrote, as it may stand in a log: without line breaks and the like. */
    public static String printable(String text) {
        return Printable.text(text);
    }

    /** Runs what logs, and leaves the MDC as it was. */
    static void with(String consumer, @Nullable MessageKey key, Runnable logging) {
        String consumerBefore = MDC.get(CONSUMER);
        String keyBefore = MDC.get(KEY);
        put(CONSUMER, printable(consumer));
        put(KEY, key == null ? null : printable(key.id()));
        try {
            logging.run();
        } finally {
            put(CONSUMER, consumerBefore);
            put(KEY, keyBefore);
        }
    }

    private static void put(String name, @Nullable String value) {
        if (value == null) {
            MDC.remove(name);
        } else {
            MDC.put(name, value);
        }
    }
}
