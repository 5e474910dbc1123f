package io.onceflux;

import io.r2dbc.spi.R2dbcException;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
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
    private final AtomicReference<@Nullable FailureKind> heldFor = new AtomicReference<>();
    private final Set<MessageKey> failedAlike = new HashSet<>();
    private String failedHow = "";
    private int unusable;

    Progress(int alarmAfter, ConsumerListener listener) {
        this.alarmAfter = alarmAfter;
        this.listener = listener;
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
        if (heldFor.get() != null && heldFor.getAndSet(null) != null) {
            listener.onResumed();
        }
    }

    /** An effect committed, so what others fail with is theirs alone. */
    void applied() {
        effects.incrementAndGet();
        synchronized (failedAlike) {
            failedAlike.clear();
            unusable = 0;
        }
    }

    /** Messages are being held; told once, and once more when what looked like an outage turns out to be a broken set-up. */
    void held(FailureKind kind, Throwable error) {
        FailureKind before = heldFor.getAndUpdate(known -> isNews(kind, known) ? kind : known);
        if (isNews(kind, before)) {
            listener.onHeld(kind, error);
        }
    }

    private static boolean isNews(FailureKind kind, @Nullable FailureKind known) {
        return known == null || (kind == FailureKind.BROKEN_SETUP && known != kind);
    }

    /**
     * Notes that a message is about to be given up.
     *
     * @return whether so many different messages have failed in this way, with no success among them, that it is more likely
     *     the set-up than the messages
     */
    boolean isOneOfMany(MessageKey key, FailureKind kind, Throwable error) {
        R2dbcException fromDatabase = Causes.find(error, R2dbcException.class);
        String how = kind + " "
                + (fromDatabase != null
                        ? fromDatabase.getSqlState()
                        : Causes.root(error).getClass().getName());
        synchronized (failedAlike) {
            if (!how.equals(failedHow)) {
                failedHow = how;
                failedAlike.clear();
            }
            if (failedAlike.size() >= alarmAfter) {
                return true;
            }
            failedAlike.add(key);
            return false;
        }
    }

    /** Notes that a message has no usable key or payload; many in a row are worth a word, once until an effect commits. */
    void unusable(String reason) {
        boolean isNews;
        synchronized (failedAlike) {
            isNews = ++unusable == alarmAfter;
        }
        if (isNews) {
            listener.onWarning(
                    ("%d messages in a row had no usable key or payload, and became dead letters: the decoder, or the place of the"
                                    + " id, may be wrong. Replay them once that is mended. The last one: %s")
                            .formatted(alarmAfter, reason));
        }
    }
}
