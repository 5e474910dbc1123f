package io.onceflux.kafka;

import io.onceflux.InvalidSetupException;
import java.time.Duration;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Checks of options: each failure names the property and what is allowed. */
final class Checked {

    private static final int LONGEST_TOPIC = 249;
    private static final Pattern TOPIC = Pattern.compile("[a-zA-Z0-9._-]+");
    private static final Duration LONGEST = Duration.ofDays(365);

    private Checked() {}

    static void that(boolean holds, String sentence) {
        if (!holds) {
            throw new InvalidSetupException(sentence);
        }
    }

    static <T> T present(String property, @Nullable T value) {
        if (value == null) {
            throw new InvalidSetupException(property + " must not be null");
        }
        return value;
    }

    static void filled(String property, @Nullable String name) {
        that(!present(property, name).isBlank(), property + " must not be blank");
    }

    /** As brokers check it. */
    static void topic(String property, @Nullable String name) {
        filled(property, name);
        that(
                name != null
                        && name.length() <= LONGEST_TOPIC
                        && TOPIC.matcher(name).matches()
                        && !name.equals(".")
                        && !name.equals(".."),
                "%s must be at most %d letters, digits, dots, dashes and underscores, but is '%s'"
                        .formatted(property, LONGEST_TOPIC, name));
    }

    static void limit(String property, @Nullable Duration value) {
        Duration given = present(property, value);
        that(
                given.compareTo(LONGEST) <= 0,
                "%s must be at most %d days, but is %s".formatted(property, LONGEST.toDays(), value));
        that(given.toMillis() > 0, property + " must be at least 1 ms, but is " + value);
    }
}
