package io.onceflux.chaos.consumer;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.time.Duration;

/** What a message says: give a customer points. */
record Order(String id, String customer, long points) {

    /** From {@code id;customer;points}. */
    static Order decode(byte[] body) {
        String[] parts = new String(body, UTF_8).split(";", -1);
        if (parts.length != 3) {
            throw new IllegalArgumentException("not an order");
        }
        return new Order(parts[0], parts[1], Long.parseLong(parts[2]));
    }

    /** How long the work on it takes: a while, so that faults hit in the middle. */
    Duration work() {
        return Duration.ofMillis(5 + Math.floorMod(31 * id.hashCode(), 95));
    }
}
