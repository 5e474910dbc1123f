package io.onceflux;

import io.onceflux.postgres.MissingPartitionException;
import java.util.Collection;
import java.util.EnumMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
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
    private final IdentityHashMap<Object, Reason> held = new IdentityHashMap<>();
    private final Map<Reason, Integer> counts = new EnumMap<>(Reason.class);
    private volatile @Nullable Reason told;
    private final Queue<Consumer<ConsumerListener>> toTell = new ConcurrentLinkedQueue<>();
    private final AtomicInteger telling = new AtomicInteger();

    /** @param listener must not throw */
    HeldNow(ConsumerListener listener) {
        this.listener = listener;
    }

    /** Why something is held; the worse, the later. */
    private enum Reason {
        OUTAGE,

        /** Of the claim table: all messages of a time are held, and no other. */
        MISSING_PARTITION,
        BROKEN_SETUP;

        static Reason of(FailureKind kind, Throwable error) {
            if (kind != FailureKind.BROKEN_SETUP) {
                return OUTAGE;
            }
            return Causes.has(error, MissingPartitionException.class) ? MISSING_PARTITION : BROKEN_SETUP;
        }
    }

    /** They are held; told once, and once more when it turns out to be worse than it looked. */
    void hold(Collection<?> them, FailureKind kind, Throwable error) {
        Reason reason = Reason.of(kind, error);
        synchronized (held) {
            them.forEach(one -> note(one, reason));
            if (told == Reason.BROKEN_SETUP && nothingIsHeldForWhatWasTold()) {
                over(); // That was mended, and now they wait for a partition.
            }
            Reason before = told;
            if (before == null || reason.compareTo(before) > 0) {
                told = reason;
                toTell.add(to -> to.onHeld(kind, error));
            }
        }
        tell();
    }

    /** An outage does not mend what was broken before. */
    private void note(Object one, Reason reason) {
        Reason before = held.get(one);
        if (before == null || (reason != Reason.OUTAGE && reason != before)) {
            held.put(one, reason);
            counts.merge(reason, 1, Integer::sum);
            if (before != null) {
                counts.merge(before, -1, Integer::sum);
            }
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
                Reason before = held.remove(one);
                if (before != null) {
                    counts.merge(before, -1, Integer::sum);
                    any = true;
                }
            }
            if (any && nothingIsHeldForWhatWasTold()) {
                over();
            }
        }
        tell();
    }

    /** Whether anything is held but these, and but those who wait for a partition: they say nothing about the database. */
    boolean anyBut(Predicate<Object> these) {
        synchronized (held) {
            return held.entrySet().stream()
                    .anyMatch(one -> one.getValue() != Reason.MISSING_PARTITION && !these.test(one.getKey()));
        }
    }

    private boolean nothingIsHeldForWhatWasTold() {
        Reason what = told;
        return what != null && counts.getOrDefault(what, 0) == 0;
    }

    /** The database takes writes. That says nothing about the tables of the effect, nor about partitions. */
    void outageIsOver() {
        overIf(Reason.OUTAGE);
    }

    /** An effect was applied: neither is the database away nor the set-up broken. But those who wait for a partition still do. */
    void effectIsApplied() {
        overIf(Reason.OUTAGE);
        overIf(Reason.BROKEN_SETUP);
    }

    private void overIf(Reason reason) {
        if (told == reason) {
            synchronized (held) {
                if (told == reason) {
                    over();
                }
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
