package io.onceflux;

import io.onceflux.postgres.ClaimTable;
import io.r2dbc.spi.Connection;
import java.time.Duration;
import java.time.Instant;
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
     * What is to be claimed for a message.
     *
     * @param key the message's key
     * @param fingerprint of its content, where claims {@linkplain #keepFingerprints keep} one; null where it is not known, and then it equals
     *     any, as one that was not kept does
     * @param time when the message came to be, where claims {@linkplain #haveBuckets have buckets}; otherwise null
     * @param tooOld why it is to be refused unless somebody has admitted it, where claims {@linkplain #admitByHand admit by hand}; otherwise
     *     null
     */
    record Claim(
            MessageKey key,
            @Nullable Long fingerprint,
            @Nullable Instant time,
            @Nullable String tooOld) {

        /** The claim of a key, and nothing else. */
        public Claim(MessageKey key) {
            this(key, null, null);
        }

        /** The claim of a message that is not too old. */
        public Claim(MessageKey key, @Nullable Long fingerprint, @Nullable Instant time) {
            this(key, fingerprint, time, null);
        }
    }

    /**
     * What became of claims. The keys that are nowhere in it are duplicates.
     *
     * @param fresh the keys that nobody had claimed
     * @param conflicting those that had been claimed with another fingerprint
     * @param refused those that cannot be claimed, with a sentence that says why: their messages become dead letters, and the others go on
     */
    record Claimed(Set<MessageKey> fresh, Set<MessageKey> conflicting, Map<MessageKey, String> refused) {

        /** Fresh keys; the others are duplicates. */
        public Claimed(Set<MessageKey> fresh) {
            this(fresh, Set.of(), Map.of());
        }
    }

    /**
     * Claims keys in the caller's transaction.
     *
     * <p>It waits for another transaction that holds one of the keys: if that commits, the key is a duplicate; if it rolls
     * back, the key is fresh here.
     *
     * @param inTransaction the connection, with a transaction under way; without one the claim would stand alone
     * @param claims of one consumer, each key once
     * @param lockTimeout how long this and every later statement of the transaction may wait for a lock; after that it fails
     *     with SQLSTATE 55P03
     */
    Mono<Claimed> claim(Connection inTransaction, List<Claim> claims, Duration lockTimeout);

    /** Whether fingerprints are kept, and compared. Default false. */
    default boolean keepFingerprints() {
        return false;
    }

    /** Whether a claim's place depends on the time of its message, so that each claim needs one. Default false. */
    default boolean haveBuckets() {
        return false;
    }

    /**
     * Whether a message that is too old may be claimed where somebody has said so. Such messages then come with {@link Claim#tooOld};
     * otherwise they do not come. Default false.
     */
    default boolean admitByHand() {
        return false;
    }

    /**
     * Writes what a claim would write, for a key that no message has, in a transaction that is going to be rolled back.
     *
     * @return whether it was stored
     */
    default Mono<Boolean> tryOut(Connection inTransaction, MessageKey nobodys, Duration lockTimeout) {
        return claim(inTransaction, List.of(new Claim(nobodys)), lockTimeout)
                .map(claimed -> !claimed.fresh().isEmpty());
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

    /**
     * Claims in two places at once, for as long as it takes to move from one to the other without applying a message twice:
     *
     * <ol>
     *   <li>Make the new place. It is empty.
     *   <li>Roll out this. Instances that are still in the old one alone run beside it.
     *   <li>Wait until no instance is in the old place alone, and from then on for as long as a message may come again.
     *   <li>Roll out the new place alone. Instances that are in both run beside it.
     * </ol>
     *
     * <p>A claim costs two statements meanwhile. Fingerprints are compared where both places keep them.
     *
     * @param from where claims were kept; has no buckets
     * @param to where they are to be kept; what it refuses is claimed in neither
     */
    static Claims moving(Claims from, Claims to) {
        return new MovingClaims(from, to);
    }

    /** Claims in a table of PostgreSQL. */
    static Claims in(ClaimTable table) {
        return new TableClaims(table);
    }
}
