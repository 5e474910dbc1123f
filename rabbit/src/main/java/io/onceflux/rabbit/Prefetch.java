package io.onceflux.rabbit;

/**
 * How many messages a generation is sent at once. A message that the client cannot read ends the connection, and costs every other one
 * that was sent with it a delivery. After the second such end they are sent one by one, so that it costs itself alone; until as
 * many have been settled as would have been sent at once: it is not among them any more.
 *
 * <p>Every call comes from the broker's thread, or while no generation is open.
 */
final class Prefetch {

    private static final int ONCE_MAY_BE_CHANCE = 2;

    private final int chosen;
    private int unreadable;
    private int settled;

    Prefetch(int chosen) {
        this.chosen = chosen;
    }

    /** For a generation that begins. */
    int next() {
        settled = 0;
        return isOneByOne() ? 1 : chosen;
    }

    /** A generation has ended. */
    void ended(Throwable why) {
        if (Refusals.isUnreadable(why)) {
            unreadable++;
        }
    }

    /**
     * A delivery is settled.
     *
     * @return whether the generation should end, because the next one may be sent more
     */
    boolean settledOne() {
        if (unreadable == 0 || ++settled < chosen) {
            return false;
        }
        boolean wasOneByOne = isOneByOne();
        unreadable = 0;
        return wasOneByOne;
    }

    private boolean isOneByOne() {
        return unreadable >= ONCE_MAY_BE_CHANCE && chosen > 1;
    }
}
