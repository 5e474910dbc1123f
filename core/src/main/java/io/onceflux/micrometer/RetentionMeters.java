package io.onceflux.micrometer;

import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.onceflux.RetentionListener;

/**
 * Counts what a retention removes, in a {@link MeterRegistry}. The meters are those of {@link RetentionMeter}; all of them are there, at 0, as
 * soon as it is given to a retention.
 *
 * <pre>{@code
 * Retention.of(table, Duration.ofDays(30)).listener(RetentionMeters.in(registry))
 * }</pre>
 */
public final class RetentionMeters implements RetentionListener {

    private static final PerRegistry<Latest<Double>> DONE = new PerRegistry<>(() -> new Latest<>(1.0));

    private final MeterRegistry registry;

    private RetentionMeters(MeterRegistry registry) {
        this.registry = registry;
    }

    /** Meters in a registry. */
    public static RetentionMeters in(MeterRegistry registry) {
        return new RetentionMeters(registry);
    }

    @Override
    public RetentionListener forTable(String table) {
        return new OfTable(registry, Tags.of(RetentionMeter.Tag.TABLE.asString(), table), DONE.of(registry, table));
    }

    private static final class OfTable implements RetentionListener {

        private final Counter removed;
        private final Counter runs;
        private final Counter failures;
        private final Latest<Double> done;

        OfTable(MeterRegistry registry, Tags tags, Latest<Double> done) {
            this.removed = registry.counter(RetentionMeter.REMOVED.getName(), tags);
            this.runs = registry.counter(RetentionMeter.RUNS.getName(), tags);
            this.failures = registry.counter(RetentionMeter.FAILURES.getName(), tags);
            this.done = done;
            Gauge.builder(RetentionMeter.DONE.getName(), done, Latest::get)
                    .tags(tags)
                    .strongReference(true)
                    .register(registry);
        }

        @Override
        public void onProgress(long claims, double share) {
            removed.increment((double) claims);
            done.set(share);
        }

        @Override
        public void onEnded() {
            runs.increment();
        }

        @Override
        public void onFailed(Throwable error) {
            failures.increment();
        }
    }
}
