package io.onceflux;

import static io.onceflux.Require.given;
import static io.onceflux.Require.positive;
import static io.onceflux.Require.that;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import java.time.Duration;
import java.util.concurrent.atomic.LongAdder;

/**
 * Keys that this process has lately seen committed. A message with such a key is a duplicate without asking the database: it saves
 * the round trips of a transaction, and is never the guarantee. Needs Caffeine on the class path.
 *
 * <p>A key is remembered after the COMMIT of its effect, or when the database has found it to be a duplicate, and never before. It is
 * forgotten when there are too many, after its time, or by {@link #forget}. May be shared by consumers of one claim
 * table, and by no others: keys are told apart by the consumer's name and the id alone. Thread-safe; never blocks.
 *
 * <p>While a key is remembered, a claim that was deleted from the database is not missed: its message, if it comes again, is taken for
 * a duplicate. So is one whose commit a database has lost in a failover. Keep the time well below the time that claims are kept.
 */
public final class RecentKeys {

    private static final Object NO_FINGERPRINT = new Object();

    private final Cache<MessageKey, Object> keys;
    private final Duration timeToLive;
    private final LongAdder hits = new LongAdder();

    private RecentKeys(long maximum, Duration timeToLive) {
        this.timeToLive = timeToLive;
        this.keys = Caffeine.newBuilder()
                .maximumSize(maximum)
                .expireAfterWrite(timeToLive)
                .executor(Runnable::run)
                .build();
    }

    /**
     * Remembers keys.
     *
     * @param maximum how many at most, from 1 to 100 million; a key takes about 150 bytes and its own length
     * @param timeToLive how long each, from 1 ms to 365 days
     * @throws InvalidSetupException for a value that is out of range, and without Caffeine
     */
    public static RecentKeys of(long maximum, Duration timeToLive) {
        that(
                maximum >= 1 && maximum <= 100_000_000,
                "the maximum of RecentKeys must be from 1 to 100000000, but is " + maximum);
        positive("timeToLive", given("timeToLive", timeToLive));
        try {
            return new RecentKeys(maximum, timeToLive);
        } catch (NoClassDefFoundError e) {
            throw new InvalidSetupException(
                    "RecentKeys needs Caffeine on the class path: add com.github.ben-manes.caffeine:caffeine", e);
        }
    }

    /** Whether it is a duplicate; what has another fingerprint than is remembered is for the database to look at. */
    boolean knows(Message<?> message) {
        Object remembered = keys.getIfPresent(message.requireKey());
        Long fingerprint = message.fingerprint();
        if (remembered == null || (fingerprint != null && !remembered.equals(fingerprint))) {
            return false;
        }
        hits.increment();
        return true;
    }

    /** Its effect is committed. */
    void remember(Message<?> message) {
        Long fingerprint = message.fingerprint();
        keys.put(message.requireKey(), fingerprint == null ? NO_FINGERPRINT : fingerprint);
    }

    /**
     * Forgets a key, so that the database is asked again. For who has deleted its claim on purpose; on every instance. Its id is found in
     * lower and upper case: to a key column of type uuid they are the same. Looks through all keys.
     */
    public void forget(MessageKey key) {
        keys.asMap()
                .keySet()
                .removeIf(known ->
                        known.consumer().equals(key.consumer()) && known.id().equalsIgnoreCase(key.id()));
    }

    /** How many messages were found to be duplicates here, each of which has saved a transaction, or its part in one. */
    public long hits() {
        return hits.sum();
    }

    @Override
    public String toString() {
        return "RecentKeys[about " + keys.estimatedSize() + " keys, " + timeToLive + " each, " + hits + " hits]";
    }
}
