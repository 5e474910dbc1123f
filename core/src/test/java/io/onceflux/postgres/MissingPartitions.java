package io.onceflux.postgres;

/** Errors for tests that have no database. */
public final class MissingPartitions {

    private MissingPartitions() {}

    public static MissingPartitionException missing() {
        return MissingPartitionException.forClaim(ClaimTable.processedMessages(), "it has none");
    }

    public static MissingPartitionException unexplained() {
        return MissingPartitionException.unexplained(ClaimTable.processedMessages());
    }
}
