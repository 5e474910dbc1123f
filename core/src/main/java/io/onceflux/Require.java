package io.onceflux;

import java.time.Duration;

/** Checks of settings: each failure names the property, its value and what is allowed. */
final class Require {

    private Require() {}

    static void that(boolean holds, String sentence) {
        if (!holds) {
            throw new InvalidSetupException(sentence);
        }
    }

    static void positive(String property, int value) {
        that(value > 0, property + " must be at least 1, but is " + value);
    }

    static void positive(String property, Duration value) {
        that(value.toMillis() > 0, property + " must be at least 1 ms, but is " + value);
    }
}
