package io.onceflux;

import io.r2dbc.spi.R2dbcException;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/** The keys that were given up since an effect was applied, by the way in which they failed. */
final class FailedAlike {

    /** Further ways count as one: neither does memory grow without bounds, nor do many faults at once escape the alarm. */
    private static final int MOST_WAYS = 16;

    private static final String ANY_FURTHER_WAY = "";

    private final int most;
    private final Map<String, Set<MessageKey>> keys = new HashMap<>();

    /** @param most how many keys may fail in the same way */
    FailedAlike(int most) {
        this.most = most;
    }

    /** Notes a key, unless as many as there may be have failed in this way; then true. */
    synchronized boolean isOneTooMany(MessageKey key, FailureKind kind, Throwable error) {
        String way = wayOf(kind, error);
        if (!keys.containsKey(way) && keys.size() >= MOST_WAYS) {
            way = ANY_FURTHER_WAY;
        }
        Set<MessageKey> alike = keys.computeIfAbsent(way, first -> new HashSet<>());
        if (alike.size() >= most) {
            return true;
        }
        alike.add(key);
        return false;
    }

    synchronized void clear() {
        keys.clear();
    }

    private static String wayOf(FailureKind kind, Throwable error) {
        R2dbcException fromDatabase = Causes.find(error, R2dbcException.class);
        return kind + " "
                + (fromDatabase != null
                        ? fromDatabase.getSqlState()
                        : Causes.root(error).getClass().getName());
    }
}
