package io.onceflux.benchmarks.report;

import java.util.Locale;

/** Numbers as people read them. */
final class Format {

    private Format() {}

    static String number(double value) {
        return value >= 100 ? String.format(Locale.ROOT, "%,.0f", value) : String.format(Locale.ROOT, "%.2f", value);
    }

    static String count(long value) {
        return String.format(Locale.ROOT, "%,d", value);
    }

    static String megabytes(long bytes) {
        return String.format(Locale.ROOT, "%,.1f MB", bytes / 1e6);
    }

    static String spread(Figure figure) {
        return number(figure.min()) + " – " + number(figure.max());
    }
}
