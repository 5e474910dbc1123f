package io.onceflux.micrometer;

import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.TimeGauge;
import io.micrometer.core.instrument.Timer;
import io.onceflux.outbox.OutboxMessage;
import io.onceflux.outbox.RelayListener;
import io.onceflux.outbox.Relayed;
import io.onceflux.postgres.OutboxTable.State;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * Counts and times what relays do, and watches their outbox, in a {@link MeterRegistry}. The meters are those of {@link RelayMeter}; all of them
 * are there, at 0, as soon as the relay is built.
 *
 * <pre>{@code
 * Relay.of(outbox).to("receipt", target).listener(RelayMeters.in(registry))
 * }</pre>
 */
public final class RelayMeters implements RelayListener {

    private static final PerRegistry<Latest<State>> STATES =
            new PerRegistry<>(() -> new Latest<>(new State(0, 0, null)));

    private final MeterRegistry registry;

    private RelayMeters(MeterRegistry registry) {
        this.registry = registry;
    }

    /** Meters in a registry. */
    public static RelayMeters in(MeterRegistry registry) {
        return new RelayMeters(registry);
    }

    @Override
    public RelayListener forRelay(String table, Set<String> kinds) {
        return new OfRelay(registry, table, kinds);
    }

    private record OfKind(Timer sent, Counter failures, Counter parked) {}

    private static final class OfRelay implements RelayListener {

        private final Map<String, OfKind> kinds = new HashMap<>();
        private final Latest<State> state;

        OfRelay(MeterRegistry registry, String table, Set<String> kinds) {
            this.state = STATES.of(registry, table);
            Tags ofTable = Tags.of(RelayMeter.Tag.TABLE.asString(), table);
            for (String kind : kinds) {
                Tags tags = ofTable.and(RelayMeter.Tag.KIND.asString(), kind);
                this.kinds.put(
                        kind,
                        new OfKind(
                                Timer.builder(RelayMeter.SENT.getName())
                                        .tags(tags)
                                        .serviceLevelObjectives(Buckets.TIMES)
                                        .register(registry),
                                registry.counter(RelayMeter.FAILURES.getName(), tags),
                                registry.counter(RelayMeter.PARKED.getName(), tags)));
            }
            Gauge.builder(
                            RelayMeter.OUTBOX_PENDING.getName(),
                            state,
                            last -> last.get().pending())
                    .tags(ofTable)
                    .strongReference(true)
                    .register(registry);
            Gauge.builder(
                            RelayMeter.OUTBOX_PARKED.getName(),
                            state,
                            last -> last.get().parked())
                    .tags(ofTable)
                    .strongReference(true)
                    .register(registry);
            TimeGauge.builder(RelayMeter.OUTBOX_AGE.getName(), state, TimeUnit.MILLISECONDS, OfRelay::age)
                    .tags(ofTable)
                    .strongReference(true)
                    .register(registry);
        }

        private static double age(Latest<State> last) {
            Duration oldest = last.get().oldest();
            return oldest == null ? 0 : oldest.toMillis();
        }

        @Override
        public void onRelayed(Relayed relayed) {
            OutboxMessage message = relayed.message();
            OfKind ofKind = kinds.get(message.kind());
            if (ofKind == null) {
                return;
            }
            if (relayed instanceof Relayed.Sent) {
                Duration age = Duration.between(message.appendedAt(), Instant.now());
                ofKind.sent.record(age.isNegative() ? Duration.ZERO : age);
            } else if (relayed instanceof Relayed.Parked) {
                ofKind.parked.increment();
            } else {
                ofKind.failures.increment();
            }
        }

        @Override
        public void onState(State now) {
            state.set(now);
        }
    }
}
