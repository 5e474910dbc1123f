package io.onceflux.postgres;

/** A claim fits no partition of a claim table that is partitioned: the table's fault, not the message's. */
public final class MissingPartitionException extends RuntimeException {

    MissingPartitionException(ClaimTable table, Throwable cause) {
        super("the claim table " + table + " has no partition for the claim; create it", cause);
    }

    MissingPartitionException(ClaimTable table, String why) {
        super("the claim table %s has no partition for the claim: %s. Does its Retention run?".formatted(table, why));
    }
}
