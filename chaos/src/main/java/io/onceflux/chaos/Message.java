package io.onceflux.chaos;

import static java.nio.charset.StandardCharsets.UTF_8;

/** A message as the producer knows it. */
record Message(String id, Kind kind, String customer, long points) {

    enum Kind {
        GOOD,
        /** Its payload is not an order. */
        UNDECODABLE,
        /** A CHECK of the ledger refuses its points, after the balance was changed. */
        REFUSED
    }

    /** Whether it must end as a dead letter. */
    boolean isPoison() {
        return kind != Kind.GOOD;
    }

    byte[] body() {
        String text = kind == Kind.UNDECODABLE ? "this is no order" : id + ";" + customer + ";" + points;
        return text.getBytes(UTF_8);
    }
}
