package io.onceflux;

import io.onceflux.Health.Trouble;
import java.util.ArrayList;
import java.util.List;

/**
 * Fluxes that have ended with an error and have not been subscribed to again: nothing is consumed where they did. One that is made anew
 * for each subscription cannot be told from another one. When such a one, that began later, completes, all before it are
 * forgotten: fluxes that come one after the other replace each other.
 */
final class EndedFluxes {

    /** Who tries for ever with fluxes that are made anew must not fill the memory. */
    private static final int MOST = 100;

    private record Ended(Object flux, long number, Trouble trouble) {}

    private final List<Ended> all = new ArrayList<>();
    private long count;

    synchronized void add(Object flux, Trouble trouble) {
        if (all.size() >= MOST) {
            all.remove(0);
        }
        all.add(new Ended(flux, count++, trouble));
    }

    /**
     * Forgets one that has ended and is the same flux.
     *
     * @return how many had ended before
     */
    synchronized long startsAgain(Object flux) {
        for (int at = 0; at < all.size(); at++) {
            if (all.get(at).flux == flux) {
                all.remove(at);
                break;
            }
        }
        return count;
    }

    /** @param number as {@link #startsAgain} gave it */
    synchronized void forgetBefore(long number) {
        all.removeIf(ended -> ended.number < number);
    }

    synchronized List<Trouble> troubles() {
        return all.stream().map(Ended::trouble).toList();
    }
}
