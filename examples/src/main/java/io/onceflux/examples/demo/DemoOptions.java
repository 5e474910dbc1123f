package io.onceflux.examples.demo;

import java.util.Iterator;
import java.util.List;

/**
 * What {@code dev/demo} was asked for; what the options mean is said by {@code dev/demo --help}.
 *
 * @param orders how many distinct orders; everything else grows with them
 */
record DemoOptions(int orders, long seed, boolean embeddedBroker, boolean kafka) {

    static DemoOptions parse(String... args) {
        int orders = 1_000;
        long seed = 20_170_914;
        boolean embeddedBroker = false;
        boolean kafka = false;
        Iterator<String> rest = List.of(args).iterator();
        while (rest.hasNext()) {
            String option = rest.next();
            switch (option) {
                case "--embedded-broker" -> embeddedBroker = true;
                case "--kafka" -> kafka = true;
                case "--orders" -> orders = (int) number(option, rest);
                case "--seed" -> seed = number(option, rest);
                default -> throw new IllegalArgumentException("Unknown option " + option);
            }
        }
        if (orders < 50 || orders > 100_000) {
            throw new IllegalArgumentException("--orders must be from 50 to 100000, but is " + orders);
        }
        if (kafka && embeddedBroker) {
            throw new IllegalArgumentException("--embedded-broker stands in for RabbitMQ; leave it out with --kafka");
        }
        return new DemoOptions(orders, seed, embeddedBroker, kafka);
    }

    private static long number(String option, Iterator<String> rest) {
        String value = rest.hasNext() ? rest.next() : "";
        try {
            return Long.parseLong(value);
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException(option + " needs a whole number, not '" + value + "'", e);
        }
    }
}
