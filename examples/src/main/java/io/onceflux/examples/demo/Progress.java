package io.onceflux.examples.demo;

import java.util.Locale;

/** Says what happens, with the time since the start. */
final class Progress {

    private final long start = System.nanoTime();

    void step(String text, Object... figures) {
        System.out.printf(Locale.ROOT, "  %5.1f s  %s%n", seconds(), String.format(Locale.ROOT, text, figures));
    }

    double seconds() {
        return (System.nanoTime() - start) / 1e9;
    }
}
