package io.onceflux.micrometer;

import io.micrometer.core.instrument.MeterRegistry;
import io.onceflux.FailureKind;
import io.onceflux.Lanes;
import java.util.Collections;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.function.ToIntFunction;
import org.jspecify.annotations.Nullable;

/**
 * What the consumers of one name are held for, and what their lanes have to do. Consumers that nobody has any more do not count; nor may
 * they keep the registry, whose meters they have.
 */
final class ConsumersOfName {

    private static final PerRegistry<ConsumersOfName> ALL = new PerRegistry<>(ConsumersOfName::new);

    private final Map<Object, FailureKind> heldFor = Collections.synchronizedMap(new WeakHashMap<>());
    private final Set<Lanes> lanes = Collections.newSetFromMap(Collections.synchronizedMap(new WeakHashMap<>()));

    private ConsumersOfName() {}

    static ConsumersOfName of(MeterRegistry registry, String consumer) {
        return ALL.of(registry, consumer);
    }

    /** @param kind null if it is not held */
    void note(Object consumer, @Nullable FailureKind kind) {
        if (kind == null) {
            heldFor.remove(consumer);
        } else {
            heldFor.put(consumer, kind);
        }
    }

    double isAnyHeldFor(FailureKind kind) {
        synchronized (heldFor) {
            return heldFor.containsValue(kind) ? 1 : 0;
        }
    }

    void add(Lanes ofOne) {
        lanes.add(ofOne);
    }

    /** The sum over those that have such a lane. */
    double inLane(int lane, ToIntFunction<Lanes> messages) {
        synchronized (lanes) {
            return lanes.stream()
                    .filter(ofOne -> lane < ofOne.count())
                    .mapToInt(messages)
                    .sum();
        }
    }
}
