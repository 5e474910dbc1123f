package io.onceflux.micrometer;

import io.micrometer.core.instrument.MeterRegistry;
import io.onceflux.FailureKind;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.WeakHashMap;
import org.jspecify.annotations.Nullable;

/**
 * What the consumers of one name are held for. A registry keeps the first gauge of a name, so they share what it looks at: one that is
 * built later, in place of the first or beside it, is seen too.
 */
final class HeldConsumers {

    private static final Map<MeterRegistry, Map<String, HeldConsumers>> ALL = new WeakHashMap<>();

    /** Consumers that nobody has any more do not count; nor may they keep the registry, whose meters they have. */
    private final Map<Object, FailureKind> kinds = Collections.synchronizedMap(new WeakHashMap<>());

    private HeldConsumers() {}

    static HeldConsumers of(MeterRegistry registry, String consumer) {
        synchronized (ALL) {
            return ALL.computeIfAbsent(registry, first -> new HashMap<>())
                    .computeIfAbsent(consumer, first -> new HeldConsumers());
        }
    }

    /** @param kind null if it is not held */
    void note(Object consumer, @Nullable FailureKind kind) {
        if (kind == null) {
            kinds.remove(consumer);
        } else {
            kinds.put(consumer, kind);
        }
    }

    double isAnyHeldFor(FailureKind kind) {
        synchronized (kinds) {
            return kinds.containsValue(kind) ? 1 : 0;
        }
    }
}
