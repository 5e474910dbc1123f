package io.onceflux.micrometer;

/** What was told last, for gauges. */
final class Latest<V> {

    private volatile V value;

    Latest(V first) {
        this.value = first;
    }

    V get() {
        return value;
    }

    void set(V next) {
        this.value = next;
    }
}
