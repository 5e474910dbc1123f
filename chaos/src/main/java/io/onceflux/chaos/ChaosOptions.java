package io.onceflux.chaos;

import io.onceflux.chaos.consumer.Variant;
import java.nio.file.Path;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;

/**
 * What {@code dev/chaos} was asked for; what the options mean is said by {@code dev/chaos --help}.
 *
 * @param rounds follows from the minutes, so that the schedule does
 */
record ChaosOptions(
        long seed, int rounds, Mix mix, Variant consumer, QueueType queue, Path logs, boolean scheduleOnly) {

    static ChaosOptions parse(String... args) {
        long seed = System.currentTimeMillis() / 1_000;
        long minutes = 1;
        long rounds = 0;
        Mix mix = Mix.ALL;
        Variant consumer = Variant.ONCEFLUX;
        QueueType queue = QueueType.CLASSIC;
        Path logs = Path.of("target", "runs");
        boolean scheduleOnly = false;
        Iterator<String> rest = List.of(args).iterator();
        while (rest.hasNext()) {
            String option = rest.next();
            switch (option) {
                case "--seed" -> seed = number(option, rest);
                case "--minutes" -> minutes = number(option, rest);
                case "--rounds" -> rounds = number(option, rest);
                case "--faults" -> mix = one(Mix.class, option, rest);
                case "--consumer" -> consumer = one(Variant.class, option, rest);
                case "--queue" -> queue = one(QueueType.class, option, rest);
                case "--logs" -> logs = Path.of(value(option, rest));
                case "--schedule" -> scheduleOnly = true;
                default -> throw new IllegalArgumentException("Unknown option " + option);
            }
        }
        long count = rounds > 0 ? rounds : minutes * 60 / mix.roundSeconds();
        if (count < 1 || count > 100_000) {
            throw new IllegalArgumentException("--minutes and --rounds must be at least 1, and not beyond all measure");
        }
        return new ChaosOptions(seed, (int) count, mix, consumer, queue, logs, scheduleOnly);
    }

    private static String value(String option, Iterator<String> rest) {
        if (!rest.hasNext()) {
            throw new IllegalArgumentException(option + " needs a value");
        }
        return rest.next();
    }

    private static long number(String option, Iterator<String> rest) {
        String value = value(option, rest);
        try {
            return Long.parseLong(value);
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException(option + " needs a whole number, not '" + value + "'", e);
        }
    }

    private static <E extends Enum<E>> E one(Class<E> type, String option, Iterator<String> rest) {
        String value = value(option, rest);
        try {
            return Enum.valueOf(type, value.toUpperCase(Locale.ROOT).replace('-', '_'));
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException(option + " does not know '" + value + "'", e);
        }
    }
}
