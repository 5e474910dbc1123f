package io.onceflux.micrometer;

import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.Timer;
import io.onceflux.ConsumerListener;
import io.onceflux.Delivery;
import io.onceflux.FailureKind;
import io.onceflux.Outcome;
import io.onceflux.Settlement;
import io.onceflux.micrometer.ConsumerMeter.Tag;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;

/** The meters of one consumer, looked up once. */
final class MetersOfConsumer implements ConsumerListener {

    private static final List<String> OUTCOMES = List.of("applied", "duplicate", "stale", "conflict", "failed");
    private static final List<String> SETTLEMENTS = List.of("acknowledge", "requeue", "dead_letter");
    private static final List<FailureKind> HELD_FOR = List.of(FailureKind.INFRASTRUCTURE, FailureKind.BROKEN_SETUP);

    private final MeterRegistry registry;
    private final String consumer;
    private final Map<String, Timer> messages;
    private final Map<String, Counter> settlements;
    private final Map<String, Counter> settlementFailures;
    private final Counter recentKeys;
    private final Counter unknownCommits;
    private final Counter dropped;
    private final Counter sourceLosses;
    private final HeldConsumers held;

    MetersOfConsumer(MeterRegistry registry, String consumer) {
        this.registry = registry;
        this.consumer = consumer;
        this.messages = byTag(
                OUTCOMES,
                outcome -> Timer.builder(ConsumerMeter.MESSAGES.getName())
                        .tags(tags(Tag.OUTCOME, outcome))
                        .register(registry));
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
        this.held = HeldConsumers.of(registry, consumer);
        for (FailureKind kind : HELD_FOR) {
            Gauge.builder(ConsumerMeter.HELD.getName(), held, all -> all.isAnyHeldFor(kind))
                    .tags(tags(Tag.KIND, lowerCase(kind)))
                    .strongReference(true)
                    .register(registry);
        }
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
    public void onOutcome(Delivery<?> delivery, Outcome outcome, Duration elapsed) {
        Timer timer = messages.get(nameOf(outcome));
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
        held.note(this, kind);
    }

    @Override
    public void onResumed() {
        held.note(this, null);
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

    private static String nameOf(Outcome outcome) {
        if (outcome instanceof Outcome.Applied) {
            return "applied";
        } else if (outcome instanceof Outcome.Duplicate) {
            return "duplicate";
        } else if (outcome instanceof Outcome.Stale) {
            return "stale";
        } else if (outcome instanceof Outcome.Conflict) {
            return "conflict";
        }
        return "failed";
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
