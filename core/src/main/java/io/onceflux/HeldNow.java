package io.onceflux;

import java.util.Collection;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * What is held now, and for what: messages, and those who wait for the database without one. It tells when that begins and when it is
 * over, in the order in which it happens, and with no lock held.
 *
 * <p>It is over when something shows so, or when nothing is held any more: where nobody waits, nobody would find out later.
 */
final class HeldNow {

    private final ConsumerListener listener;
    private final IdentityHashMap<Object, FailureKind> held = new IdentityHashMap<>();
    private int forBrokenSetup;
    private volatile @Nullable FailureKind told;
    private final Queue<Consumer<ConsumerListener>> toTell = new ConcurrentLinkedQueue<>();
    private final AtomicInteger telling = new AtomicInteger();

    /** @param listener must not throw */
    HeldNow(ConsumerListener listener) {
        this.listener = listener;
    }

    /** They are held; told once, and once more when what looked like an outage turns out to be a broken set-up. */
    void hold(Collection<?> them, FailureKind kind, Throwable error) {
        synchronized (held) {
            them.forEach(one -> note(one, kind));
            if (told == null || (kind == FailureKind.BROKEN_SETUP && told != kind)) {
                told = kind;
                toTell.add(to -> to.onHeld(kind, error));
            }
        }
        tell();
    }

    /** An outage during a broken set-up does not mend it. */
    private void note(Object one, FailureKind kind) {
        FailureKind before = held.get(one);
        if (before == null || kind == FailureKind.BROKEN_SETUP) {
            held.put(one, kind);
            forBrokenSetup += before != kind && kind == FailureKind.BROKEN_SETUP ? 1 : 0;
        }
    }

    /** They are not held any more, whatever became of them; those that were not held do not matter. */
    void release(Collection<?> them) {
        synchronized (held) {
            if (held.isEmpty()) {
                return; // As nearly always.
            }
            boolean any = false;
            for (Object one : them) {
                FailureKind before = held.remove(one);
                any |= before != null;
                forBrokenSetup -= before == FailureKind.BROKEN_SETUP ? 1 : 0;
            }
            if (any && nothingIsHeldForWhatWasTold()) {
                over();
            }
        }
        tell();
    }

    /** Whether anything is held but these. */
    boolean anyBut(Predicate<Object> these) {
        synchronized (held) {
            return !held.keySet().stream().allMatch(these);
        }
    }

    private boolean nothingIsHeldForWhatWasTold() {
        return told == FailureKind.BROKEN_SETUP ? forBrokenSetup == 0 : held.size() == forBrokenSetup;
    }

    /** The database takes writes. That says nothing about the tables of the effect. */
    void outageIsOver() {
        if (told == FailureKind.INFRASTRUCTURE) {
            synchronized (held) {
                if (told == FailureKind.INFRASTRUCTURE) {
                    over();
                }
            }
            tell();
        }
    }

    /** An effect was applied: neither is the database away nor the set-up broken. */
    void allIsOver() {
        if (told != null) {
            synchronized (held) {
                over();
            }
            tell();
        }
    }

    private void over() {
        if (told != null) {
            told = null;
            toTell.add(ConsumerListener::onResumed);
        }
    }

    /** One thread at a time; the others leave what they have to tell to it. */
    private void tell() {
        if (toTell.isEmpty() || telling.getAndIncrement() != 0) {
            return;
        }
        int seen = 1;
        while (seen != 0) {
            for (Consumer<ConsumerListener> next = toTell.poll(); next != null; next = toTell.poll()) {
                next.accept(listener);
            }
            seen = telling.addAndGet(-seen);
        }
    }

    /** Somebody who waits for the database without a message. */
    final class Waiter {

        private final List<Waiter> itself = List.of(this);
        private volatile boolean done;

        void waits(FailureKind kind, Throwable error) {
            hold(itself, kind, error);
            if (done) { // It was cancelled meanwhile.
                release(itself);
            }
        }

        void done() {
            done = true;
            release(itself);
        }
    }
}
