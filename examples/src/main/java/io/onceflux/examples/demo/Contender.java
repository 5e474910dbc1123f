package io.onceflux.examples.demo;

import io.onceflux.examples.loyalty.LoyaltyApplication;
import io.onceflux.examples.naive.NaiveApplication;

/** The two services that get the same deliveries. Each has its own queue and its own tables. */
enum Contender {
    NAIVE("Naive", "looks in the ledger, credits, acknowledges", "naive", "naive_", NaiveApplication.class),
    ONCEFLUX(
            "OnceFlux",
            "claims and credits in one transaction, acknowledges after the commit",
            "loyalty",
            "",
            LoyaltyApplication.class);

    private final String title;
    private final String method;
    private final String settings;
    private final String tablePrefix;
    private final Class<?> main;

    Contender(String title, String method, String settings, String tablePrefix, Class<?> main) {
        this.title = title;
        this.method = method;
        this.settings = settings;
        this.tablePrefix = tablePrefix;
        this.main = main;
    }

    String title() {
        return title;
    }

    /** What it does with a message. */
    String method() {
        return method;
    }

    Class<?> main() {
        return main;
    }

    /** The system property for one of its settings. */
    String property(String name) {
        return settings + "." + name;
    }

    String balances() {
        return tablePrefix + "balances";
    }

    String ledger() {
        return tablePrefix + "point_ledger";
    }
}
