package io.onceflux.micrometer;

import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.DistributionSummary;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.Timer;
import io.onceflux.ConsumerListener;
import io.onceflux.Delivery;
import io.onceflux.FailureKind;
import io.onceflux.IdempotentConsumer;
import io.onceflux.Lanes;
import io.onceflux.Outcome;
import io.onceflux.Settlement;
import io.onceflux.micrometer.ConsumerMeter.Tag;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;
import java.util.function.ToIntFunction;
import java.util.stream.Collectors;

/** The meters of one consumer, looked up once. */
final class MetersOfConsumer implements ConsumerListener {

    private static final List<String> SETTLEMENTS = List.of("acknowledge", "requeue", "dead_letter");
    private static final List<FailureKind> HELD_FOR = List.of(FailureKind.INFRASTRUCTURE, FailureKind.BROKEN_SETUP);

    private final MeterRegistry registry;
    private final String consumer;
    private final Map<String, Timer> messages;
    private final Timer claims;
    private final DistributionSummary batchSize;
    private final Map<String, Counter> settlements;
    private final Map<String, Counter> settlementFailures;
    private final Counter recentKeys;
    private final Counter unknownCommits;
    private final Counter dropped;
    private final Counter sourceLosses;
    private final ConsumersOfName all;

    /** @param percentiles computed here, for a registry that cannot */
    MetersOfConsumer(MeterRegistry registry, String consumer, double... percentiles) {
        this.registry = registry;
        this.consumer = consumer;
        this.messages = byTag(
                OutcomeName.ALL, outcome -> timer(ConsumerMeter.MESSAGES, tags(Tag.OUTCOME, outcome), percentiles));
        this.claims = timer(ConsumerMeter.CLAIMS, tags(), percentiles);
        this.batchSize = DistributionSummary.builder(ConsumerMeter.BATCH_SIZE.getName())
                .baseUnit(ConsumerMeter.BATCH_SIZE.getBaseUnit())
                .tags(tags())
                .serviceLevelObjectives(Buckets.SIZES)
                .register(registry);
        this.settlements = byTag(
                SETTLEMENTS,
                settlement -> registry.counter(ConsumerMeter.SETTLEMENTS.getName(), tags(Tag.SETTLEMENT, settlement)));
        this.settlementFailures = byTag(
                SETTLEMENTS,
                settlement -> registry.counter(
                        ConsumerMeter.SETTLEMENT_FAILURES.getName(), tags(Tag.SETTLEMENT, settlement)));
        this.recentKeys = registry.counter(ConsumerMeter.RECENT_KEYS.getName(), tags());
        this.unknownCommits = registry.counter(ConsumerMeter.UNKNOWN_COMMITS.getName(), tags());
        this.dropped = registry.counter(ConsumerMeter.DROPPED.getName(), tags());
        this.sourceLosses = registry.counter(ConsumerMeter.SOURCE_LOSSES.getName(), tags());
        for (FailureKind kind : FailureKind.values()) {
            retries(kind, SqlStateClass.NONE);
        }
        this.all = ConsumersOfName.of(registry, consumer);
        for (FailureKind kind : HELD_FOR) {
            Gauge.builder(ConsumerMeter.HELD.getName(), all, consumers -> consumers.isAnyHeldFor(kind))
                    .tags(tags(Tag.KIND, lowerCase(kind)))
                    .strongReference(true)
                    .register(registry);
        }
    }

    private Timer timer(ConsumerMeter meter, Tags tags, double... percentiles) {
        Timer.Builder timer = Timer.builder(meter.getName()).tags(tags).serviceLevelObjectives(Buckets.TIMES);
        return (percentiles.length == 0 ? timer : timer.publishPercentiles(percentiles)).register(registry);
    }

    private static <M> Map<String, M> byTag(List<String> values, Function<String, M> meter) {
        return values.stream().collect(Collectors.toUnmodifiableMap(Function.identity(), meter));
    }

    private Tags tags() {
        return Tags.of(Tag.CONSUMER.asString(), consumer);
    }

    private Tags tags(Tag tag, String value) {
        return tags().and(tag.asString(), value);
    }

    @Override
    public void onBuilt(IdempotentConsumer<?> built) {
        Lanes lanes = built.lanes();
        all.add(lanes);
        for (int i = 0; i < lanes.count(); i++) {
            int lane = i;
            gauge(ConsumerMeter.QUEUED, lane, ofOne -> ofOne.queued(lane));
            gauge(ConsumerMeter.IN_FLIGHT, lane, ofOne -> ofOne.inFlight(lane));
        }
    }

    private void gauge(ConsumerMeter meter, int lane, ToIntFunction<Lanes> messages) {
        Gauge.builder(meter.getName(), all, consumers -> consumers.inLane(lane, messages))
                .tags(tags(Tag.LANE, Integer.toString(lane)))
                .strongReference(true)
                .register(registry);
    }

    @Override
    public void onClaimed(int messages, Duration elapsed) {
        claims.record(elapsed);
        batchSize.record(messages);
    }

    @Override
    public void onOutcome(Delivery<?> delivery, Outcome outcome, Duration elapsed) {
        Timer timer = messages.get(OutcomeName.of(outcome));
        if (timer != null) {
            timer.record(elapsed);
        }
    }

    @Override
    public void onRecentKey(Delivery<?> delivery) {
        recentKeys.increment();
    }

    /** The registry keeps what it has; kinds and classes are few. */
    @Override
    public void onRetry(Delivery<?> delivery, FailureKind kind, int attempt, Duration delay, Throwable error) {
        retries(kind, SqlStateClass.of(error)).increment();
    }

    private Counter retries(FailureKind kind, String sqlStateClass) {
        return registry.counter(
                ConsumerMeter.RETRIES.getName(),
                tags(Tag.KIND, lowerCase(kind)).and(Tag.SQL_STATE_CLASS.asString(), sqlStateClass));
    }

    @Override
    public void onUnknownCommit(Delivery<?> delivery, Throwable error) {
        unknownCommits.increment();
    }

    @Override
    public void onHeld(FailureKind kind, Throwable error) {
        all.note(this, kind);
    }

    @Override
    public void onResumed() {
        all.note(this, null);
    }

    @Override
    public void onSettled(Delivery<?> delivery, Settlement settlement) {
        increment(settlements, settlement);
    }

    @Override
    public void onSettleFailed(Delivery<?> delivery, Settlement settlement, Throwable error) {
        increment(settlementFailures, settlement);
    }

    @Override
    public void onDropped(Delivery<?> delivery) {
        dropped.increment();
    }

    @Override
    public void onSourceLost(String source, String reason, Duration untilNextTry) {
        sourceLosses.increment();
    }

    private static void increment(Map<String, Counter> counters, Settlement settlement) {
        Counter counter = counters.get(nameOf(settlement));
        if (counter != null) {
            counter.increment();
        }
    }

    private static String nameOf(Settlement settlement) {
        if (settlement instanceof Settlement.Acknowledge) {
            return "acknowledge";
        }
        return settlement instanceof Settlement.Requeue ? "requeue" : "dead_letter";
    }

    private static String lowerCase(FailureKind kind) {
        return kind.name().toLowerCase(Locale.ROOT);
    }
}
