package io.onceflux.examples.demo;

import java.util.Locale;
import java.util.function.ToLongFunction;

/** What a person reads at the end, and the line that a script reads. */
record Report(Books naive, Books onceFlux, String place) {

    String table() {
        StringBuilder table = new StringBuilder();
        line(table, "", Contender.NAIVE.title(), Contender.ONCEFLUX.title());
        line(table, "-".repeat(44), "-".repeat(10), "-".repeat(10));
        row(table, "orders", Books::orders);
        row(table, "messages sent (copies and replays included)", Books::deliveries);
        row(table, "credits in the ledger", Books::credits);
        row(table, "points that customers should have", Books::pointsDue);
        row(table, "points that customers have", Books::points);
        row(table, "points given away", Books::excess);
        row(table, "customers with a wrong balance", Books::wrongBalances);
        row(table, "messages left in the " + place, Books::queued);
        line(table, "messages given up (dead letters)", "-", String.valueOf(onceFlux.deadLetters()));
        return table.toString();
    }

    String verdict() {
        return onceFlux.areExact()
                ? "  OnceFlux credited every order once. What the broker delivered again after the kill is not counted above;%n  no service can choose that."
                        .formatted()
                : "  OnceFlux's books are NOT exact.";
    }

    String audit() {
        return "audit orders=%d deliveries=%d applied=%d duplicates=%d excess_points=%d naive_excess_points=%d"
                .formatted(
                        onceFlux.orders(),
                        onceFlux.deliveries(),
                        onceFlux.credits(),
                        onceFlux.duplicates(),
                        onceFlux.excess(),
                        naive.excess());
    }

    private void row(StringBuilder table, String name, ToLongFunction<Books> figure) {
        line(table, name, grouped(figure.applyAsLong(naive)), grouped(figure.applyAsLong(onceFlux)));
    }

    private static void line(StringBuilder table, String name, String naive, String onceFlux) {
        table.append("  %-44s  %10s  %10s%n".formatted(name, naive, onceFlux));
    }

    private static String grouped(long figure) {
        return String.format(Locale.ROOT, "%,d", figure);
    }
}
