package io.onceflux.postgres;

/**
 * A claim fits no partition of a claim table that is partitioned: the table's fault, not the message's. The sentence says what to do, in place of
 * the server's words; so it has no cause.
 */
public final class MissingPartitionException extends RuntimeException {

    private final boolean unexplained;

    private MissingPartitionException(String sentence, boolean unexplained) {
        super(sentence);
        this.unexplained = unexplained;
    }

    MissingPartitionException(String sentence) {
        this(sentence, false);
    }

    static MissingPartitionException forClaim(ClaimTable table, String why) {
        return new MissingPartitionException(
                "the claim table %s has no partition for the claim: %s".formatted(table, why), false);
    }

    /** The server has refused a claim for which there was a partition when the table was looked at last. */
    static MissingPartitionException unexplained(ClaimTable table) {
        return new MissingPartitionException(
                ("the claim table %s has no partition for the claim any more: it was dropped or detached since it was looked at. The"
                                + " next try will say more")
                        .formatted(table),
                true);
    }

    /** Whether the next claim, in another transaction, looks at the table first, and finds the partition or says what is missing. */
    public boolean isUnexplained() {
        return unexplained;
    }
}
