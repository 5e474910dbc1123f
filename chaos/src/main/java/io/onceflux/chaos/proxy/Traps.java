package io.onceflux.chaos.proxy;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Optional;

/** The traps that are armed, for all connections of a proxy together. One after the other. */
final class Traps {

    private final Deque<Trap> armed = new ArrayDeque<>();

    synchronized void arm(Trap trap) {
        armed.addLast(trap);
    }

    synchronized void disarm() {
        armed.clear();
    }

    /** The moment has come on some connection. */
    synchronized Optional<Trap> moment() {
        Trap first = armed.peekFirst();
        if (first == null || !first.springs()) {
            return Optional.empty();
        }
        if (first.isUsedUp()) {
            armed.removeFirst();
        }
        return Optional.of(first);
    }
}
