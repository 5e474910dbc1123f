package io.onceflux.rabbit;

import java.util.BitSet;
import java.util.function.LongPredicate;

/** Which deliveries of a channel have had their answer: each up to a tag, and some beyond. A bit for each of these. */
final class AnsweredTags {

    private long upTo;
    private BitSet beyond = new BitSet();

    void add(long tag) {
        beyond.set(Math.toIntExact(tag - upTo - 1));
    }

    boolean has(long tag) {
        return tag <= upTo || beyond.get(Math.toIntExact(tag - upTo - 1));
    }

    /** Moves on to the first tag that has had no answer and is not to be had either. */
    void advance(LongPredicate answeredNow) {
        int moved = 0;
        while (beyond.get(moved) || answeredNow.test(upTo + 1 + moved)) {
            moved++;
        }
        if (moved > 0) {
            upTo += moved;
            beyond = beyond.get(moved, Math.max(moved, beyond.length()));
        }
    }
}
