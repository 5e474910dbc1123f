package io.onceflux;

import io.onceflux.HeldNow.Waiter;
import java.util.Collection;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * What the messages of one consumer say about each other: whether any commit, whether they are being held, and whether many
 * different ones fail in the same way.
 */
final class Progress {

    private final int alarmAfter;
    private final ConsumerListener listener;
    private final AtomicLong commits = new AtomicLong();
    private final AtomicLong effects = new AtomicLong();
    private final AtomicInteger unusable = new AtomicInteger();
    private final AtomicInteger tooOld = new AtomicInteger();
    private final FailedAlike failedAlike;
    private final HeldNow heldNow;

    Progress(int alarmAfter, ConsumerListener listener) {
        this.alarmAfter = alarmAfter;
        this.listener = listener;
        this.failedAlike = new FailedAlike(alarmAfter);
        this.heldNow = new HeldNow(listener);
    }

    long commits() {
        return commits.get();
    }

    /** Of the commits, those with an effect. */
    long effects() {
        return effects.get();
    }

    /** A transaction committed, with an effect or as a duplicate. */
    void committed() {
        commits.incrementAndGet();
        heldNow.outageIsOver();
    }

    /** An effect committed, so what others fail with is theirs alone, or their partition's. */
    void applied() {
        effects.incrementAndGet();
        unusable.set(0);
        tooOld.set(0);
        failedAlike.clear();
        heldNow.effectIsApplied();
    }

    /** The database took a write for somebody who had waited for that. */
    void databaseAnswers() {
        heldNow.outageIsOver();
    }

    /** Messages are held from now on, until they are {@link #released}. */
    void held(Collection<? extends Message<?>> messages, FailureKind kind, Throwable error) {
        heldNow.hold(messages, kind, error);
    }

    /** Messages have their outcome, are let go, or fail in a way that holds nothing. */
    void released(Collection<? extends Message<?>> messages) {
        heldNow.release(messages);
    }

    /** Whether anything is held now but messages of this key, and those whose partition is missing. */
    boolean holdsOthersThan(@Nullable MessageKey key) {
        return heldNow.anyBut(one -> one instanceof Message<?> message && Objects.equals(message.key(), key));
    }

    /** For somebody who waits for the database without a message. */
    Waiter waiter() {
        return heldNow.new Waiter();
    }

    /**
     * Notes that a message is about to be given up.
     *
     * @return whether so many different messages have failed in this way, with no success among them, that it is more likely
     *     the set-up than the messages
     */
    boolean isOneOfMany(MessageKey key, FailureKind kind, Throwable error) {
        return failedAlike.isOneTooMany(key, kind, error);
    }

    /** Notes that a message is too old; many in a row are worth a word, too. */
    void tooOld(String reason) {
        if (tooOld.incrementAndGet() == alarmAfter) {
            listener.onWarning(
                    ("%d messages in a row were older than the redelivery window or than the claims that are kept, and became dead letters:"
                                    + " the time that they carry, or a clock, may be wrong, or the backlog too long. The last one: %s")
                            .formatted(alarmAfter, reason));
        }
    }

    /** Notes that a message has no usable key or payload; many in a row are worth a word, once until an effect commits. */
    void unusable(String reason) {
        if (unusable.incrementAndGet() == alarmAfter) {
            listener.onWarning(
                    ("%d messages in a row had no usable key or payload, and became dead letters: the decoder, or the place of the"
                                    + " id, may be wrong. Replay them once that is mended. The last one: %s")
                            .formatted(alarmAfter, reason));
        }
    }
}
