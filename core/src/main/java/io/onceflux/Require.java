package io.onceflux;

import java.time.Duration;
import org.jspecify.annotations.Nullable;

/** Checks of settings: each failure names the property, its value and what is allowed. */
final class Require {

    private static final Duration LEAST = Duration.ofMillis(1);
    private static final Duration LONGEST = Duration.ofDays(365);

    private Require() {}

    static void that(boolean holds, String sentence) {
        if (!holds) {
            throw new InvalidSetupException(sentence);
        }
    }

    static void positive(String property, int value) {
        that(value > 0, property + " must be at least 1, but is " + value);
    }

    static void atMost(String property, int value, int most) {
        that(value <= most, "%s must be at most %d, but is %d".formatted(property, most, value));
    }

    static void positive(String property, Duration value) {
        given(property, value);
        that(
                value.compareTo(LEAST) >= 0 && value.compareTo(LONGEST) <= 0,
                "%s must be from 1 ms to %d days, but is %s".formatted(property, LONGEST.toDays(), value));
    }

    static <V> V given(String property, @Nullable V value) {
        if (value == null) {
            throw new InvalidSetupException(property + " must not be null");
        }
        return value;
    }

    /** Who did something by hand, or why: kept as text in a table. */
    static void writtenDown(String name, @Nullable String words) {
        String given = given(name, words);
        that(!given.isBlank(), name + " must not be blank: it is written down for who asks later");
        that(given.indexOf('\0') < 0, name + " must not contain NUL, which PostgreSQL's text cannot hold");
    }
}
