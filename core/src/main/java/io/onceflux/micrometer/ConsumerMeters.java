package io.onceflux.micrometer;

import io.micrometer.core.instrument.MeterRegistry;
import io.onceflux.ConsumerListener;
import io.onceflux.InvalidSetupException;

/**
 * Counts and times what consumers do, in a {@link MeterRegistry}. One may be given to any number of consumers. The meters are those of
 * {@link ConsumerMeter}; all of them are there, at 0, as soon as a consumer is built. Only of the retries a series for each class of
 * SQLSTATE comes with the first one.
 *
 * <pre>{@code
 * IdempotentConsumer.<Order>named("loyalty").listener(ConsumerMeters.in(registry))
 * }</pre>
 *
 * <p>Timers have buckets from 1 ms to 1 min, of which a monitoring system such as Prometheus makes percentiles over all instances.
 */
public final class ConsumerMeters implements ConsumerListener {

    private final MeterRegistry registry;
    private final double[] percentiles;

    private ConsumerMeters(MeterRegistry registry, double... percentiles) {
        this.registry = registry;
        this.percentiles = percentiles;
    }

    /** Meters in a registry. */
    public static ConsumerMeters in(MeterRegistry registry) {
        return new ConsumerMeters(registry);
    }

    /**
     * These, with percentiles of the timers that are computed here, for a registry that makes none of the buckets. They cannot be put
     * together over instances, and each costs some memory. Default: none.
     *
     * @param some from 0 to 1, such as 0.5 and 0.99
     * @throws InvalidSetupException for one that is out of range
     */
    public ConsumerMeters percentiles(double... some) {
        for (double one : some) {
            if (!(one >= 0 && one <= 1)) {
                throw new InvalidSetupException("a percentile must be from 0 to 1, but is " + one);
            }
        }
        return new ConsumerMeters(registry, some.clone());
    }

    @Override
    public ConsumerListener forConsumer(String consumer) {
        return new MetersOfConsumer(registry, consumer, percentiles);
    }
}
