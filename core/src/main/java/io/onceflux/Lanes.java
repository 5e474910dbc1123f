package io.onceflux;

import java.util.concurrent.atomic.AtomicIntegerArray;

/**
 * How much the lanes of a consumer have to do now, in all of its fluxes together. A lane that has much more than the others has a hot
 * key. To look at it costs the lanes nothing, and may be done on any thread; the numbers of different lanes are not of the same moment.
 */
public final class Lanes {

    private final AtomicIntegerArray queued;
    private final AtomicIntegerArray inFlight;

    Lanes(int count) {
        this.queued = new AtomicIntegerArray(count);
        this.inFlight = new AtomicIntegerArray(count);
    }

    /** How many lanes there are: {@link ConsumerBuilder#lanes}. */
    public int count() {
        return queued.length();
    }

    /**
     * How many messages wait for the lane.
     *
     * @param lane from 0 to {@link #count()} - 1
     */
    public int queued(int lane) {
        return queued.get(lane);
    }

    /**
     * How many messages are attempted, held or settled, or have outcomes that the subscriber has not taken yet.
     *
     * @param lane from 0 to {@link #count()} - 1
     */
    public int inFlight(int lane) {
        return inFlight.get(lane);
    }

    void arrived(int lane) {
        queued.incrementAndGet(lane);
    }

    void begun(int lane, int messages) {
        queued.addAndGet(lane, -messages);
        inFlight.addAndGet(lane, messages);
    }

    void done(int lane, int messages) {
        inFlight.addAndGet(lane, -messages);
    }

    /** They are not going to be begun. */
    void discarded(int lane, int messages) {
        queued.addAndGet(lane, -messages);
    }
}
