package io.onceflux.chaos;

import io.onceflux.chaos.consumer.Copy;
import org.jspecify.annotations.Nullable;

/**
 * A dead letter as it was found.
 *
 * @param copy whose it is; null in a table, where the copies of a message share a row
 * @param times how often it was stored
 * @param reason empty if it has none, as one that the broker gave up
 */
@SuppressWarnings("ArrayRecordComponent") // never compared as a whole
record Letter(String id, @Nullable Copy copy, int times, String reason, byte[] body) {

    static Letter inQueue(Copy copy, String reason, byte[] body) {
        return new Letter(copy.id(), copy, 1, reason, body);
    }

    static Letter inTable(String id, int times, String reason, byte[] body) {
        return new Letter(id, null, times, reason, body);
    }
}
