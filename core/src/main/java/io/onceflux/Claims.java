package io.onceflux;

import io.onceflux.postgres.ClaimTable;
import io.r2dbc.spi.Connection;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/**
 * Where claims are kept. A claim is the row that says "this consumer has applied this message"; it is written in the
 * transaction of the effect, and a unique index decides who is first.
 */
public interface Claims {

    /**
     * Checks that claims can be written and are unique, before a consumer takes its first message.
     *
     * @param connection a connection outside of any transaction
     * @param consumer the consumer that is going to claim
     * @return a sentence for everything that works but is likely not what is wanted; {@link InvalidSetupException} with what
     *     to change, or the database's own error
     */
    Mono<List<String>> verify(Connection connection, String consumer);

    /**
     * Claims keys in the caller's transaction.
     *
     * <p>It waits for another transaction that holds one of the keys: if that commits, the key is a duplicate; if it rolls
     * back, the key is fresh here.
     *
     * @param inTransaction the connection, with a transaction under way; without one the claim would stand alone
     * @param keys the keys of one consumer, each once
     * @param lockTimeout how long this and every later statement of the transaction may wait for a lock; after that it fails
     *     with SQLSTATE 55P03
     * @return the keys that were fresh; the others are duplicates
     */
    Mono<Set<MessageKey>> claim(Connection inTransaction, List<MessageKey> keys, Duration lockTimeout);

    /**
     * What became of keys that were claimed with fingerprints.
     *
     * @param fresh the keys that were fresh
     * @param conflicting those that had been claimed with another fingerprint; all others are duplicates
     */
    record Claimed(Set<MessageKey> fresh, Set<MessageKey> conflicting) {}

    /** Whether {@link #claimWithFingerprints} can be used. Default false. */
    default boolean keepFingerprints() {
        return false;
    }

    /**
     * The same as {@link #claim}, with a fingerprint for each key, which is kept with a fresh claim and compared with that of an older one.
     *
     * @param fingerprints by key; null where it is not known, and then it equals any, as one that was not kept does
     */
    default Mono<Claimed> claimWithFingerprints(
            Connection inTransaction, Map<MessageKey, @Nullable Long> fingerprints, Duration lockTimeout) {
        return Mono.error(new UnsupportedOperationException("claims in " + this + " have no fingerprints"));
    }

    /**
     * Writes what a claim would write, for a key that no message has, in a transaction that is going to be rolled back.
     *
     * @return whether it was stored
     */
    default Mono<Boolean> tryOut(Connection inTransaction, MessageKey nobodys, Duration lockTimeout) {
        return claim(inTransaction, List.of(nobodys), lockTimeout).map(fresh -> !fresh.isEmpty());
    }

    /**
     * Whether a key is a place in the source's order, so that claiming it claims everything before it. Messages are then identified by
     * {@link Delivery#id} and kept in the order of {@link Delivery#orderingKey}, and nothing else; each is claimed, or stored as a dead letter,
     * before the next one. Default false.
     */
    default boolean followSource() {
        return false;
    }

    /**
     * Whether claims are kept, so that a later message with the key is a duplicate. Where they are not, each key is fresh, and the effect
     * of each message runs: copies within a batch too. Default true.
     */
    default boolean areKept() {
        return true;
    }

    /**
     * Whether a consumer has claimed before: then it is not new, whatever its source thinks of it.
     *
     * @param connection a connection outside of any transaction
     * @return empty where that is not known, which is the default
     */
    default Mono<Boolean> hasAny(Connection connection, String consumer) {
        return Mono.empty();
    }

    /** Claims in a table of PostgreSQL. */
    static Claims in(ClaimTable table) {
        return new TableClaims(table);
    }
}
