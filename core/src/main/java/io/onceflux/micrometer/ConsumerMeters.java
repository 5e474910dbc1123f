package io.onceflux.micrometer;

import io.micrometer.core.instrument.MeterRegistry;
import io.onceflux.ConsumerListener;

/**
 * Counts and times what consumers do, in a {@link MeterRegistry}. One may be given to any number of consumers. The meters are those of
 * {@link ConsumerMeter}; all of them are there, at 0, as soon as a consumer is built. Only of the retries a series for each class of
 * SQLSTATE comes with the first one.
 *
 * <pre>{@code
 * IdempotentConsumer.<Order>named("loyalty").listener(ConsumerMeters.in(registry))
 * }</pre>
 */
public final class ConsumerMeters implements ConsumerListener {

    private final MeterRegistry registry;

    private ConsumerMeters(MeterRegistry registry) {
        this.registry = registry;
    }

    /** Meters in a registry. */
    public static ConsumerMeters in(MeterRegistry registry) {
        return new ConsumerMeters(registry);
    }

    @Override
    public ConsumerListener forConsumer(String consumer) {
        return new MetersOfConsumer(registry, consumer);
    }
}
