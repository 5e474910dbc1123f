package io.onceflux.chaos.proxy;

import java.time.Duration;

/** Waits for a moment of the protocol, and then does the same to one connection or more. */
public final class Trap {

    /** What happens at the moment. */
    public enum Action {
        /** The connection is cut, and the server never gets the frame. */
        CUT_BEFORE,
        /** The server gets the frame and answers, and the connection is cut before the client gets that. */
        CUT_AFTER,
        /** The server gets the frame late, even if the client has given up by then: networks do that. */
        DELAY_BEFORE,
        /** The client gets the answer late. */
        DELAY_AFTER
    }

    private final Action action;
    private final Duration delay;
    private final int times;
    private final Runnable atTheMoment;
    private int toPass;
    private int hits;

    /**
     * Describes a trap.
     *
     * @param toPass how many moments pass before it springs
     * @param times how often it springs then
     * @param delay for the actions that delay
     * @param atTheMoment what else is done just before a connection is cut, while it stands still
     */
    public Trap(Action action, int toPass, int times, Duration delay, Runnable atTheMoment) {
        this.action = action;
        this.toPass = toPass;
        this.times = times;
        this.delay = delay;
        this.atTheMoment = atTheMoment;
    }

    /** How many connections it has hit. */
    public synchronized int hits() {
        return hits;
    }

    Action action() {
        return action;
    }

    Duration delay() {
        return delay;
    }

    Runnable atTheMoment() {
        return atTheMoment;
    }

    synchronized boolean isUsedUp() {
        return hits == times;
    }

    /** Whether this moment is one of those it waits for. */
    synchronized boolean springs() {
        if (toPass > 0) {
            toPass--;
            return false;
        }
        hits++;
        return true;
    }
}
