package io.onceflux.micrometer;

import io.micrometer.core.instrument.MeterRegistry;
import java.util.HashMap;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.function.Supplier;

/**
 * What the gauges of a registry look at, by name. A registry keeps the first gauge of a name and its tags, so whoever comes later, in place
 * of the first or beside it, has to share what that looks at. It must not refer to the registry.
 */
final class PerRegistry<V> {

    private final Map<MeterRegistry, Map<String, V>> all = new WeakHashMap<>();
    private final Supplier<V> first;

    PerRegistry(Supplier<V> first) {
        this.first = first;
    }

    V of(MeterRegistry registry, String name) {
        synchronized (all) {
            return all.computeIfAbsent(registry, none -> new HashMap<>()).computeIfAbsent(name, none -> first.get());
        }
    }
}
