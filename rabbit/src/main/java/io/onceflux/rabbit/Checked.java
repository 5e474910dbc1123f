package io.onceflux.rabbit;

import io.onceflux.InvalidSetupException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;

/** Checks of options: each failure names the property and what is allowed. */
final class Checked {

    private static final int LONGEST_NAME = 255;
    private static final Duration LONGEST = Duration.ofDays(365);

    private Checked() {}

    static void that(boolean holds, String sentence) {
        if (!holds) {
            throw new InvalidSetupException(sentence);
        }
    }

    static <T> T present(String property, T value) {
        that(value != null, property + " must not be null");
        return value;
    }

    /** The protocol has a byte for the length of a name. */
    static void name(String property, String name) {
        int bytes = present(property, name).getBytes(StandardCharsets.UTF_8).length;
        that(
                bytes <= LONGEST_NAME,
                "%s must have at most %d bytes in UTF-8, but has %d".formatted(property, LONGEST_NAME, bytes));
    }

    static void filled(String property, String name) {
        name(property, name);
        that(!name.isBlank(), property + " must not be blank");
    }

    static void limit(String property, Duration value) {
        present(property, value);
        that(
                value.compareTo(LONGEST) <= 0,
                "%s must be at most %d days, but is %s".formatted(property, LONGEST.toDays(), value));
        that(value.toMillis() > 0, property + " must be at least 1 ms, but is " + value);
    }
}
