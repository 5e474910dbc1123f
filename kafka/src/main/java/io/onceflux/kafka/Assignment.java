package io.onceflux.kafka;

import java.util.ArrayDeque;
import java.util.List;
import java.util.NavigableMap;
import java.util.Queue;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.jspecify.annotations.Nullable;

/**
 * A partition, for as long as it is this consumer's: which of its messages are not done yet, and so how far the group's offset
 * may be committed, which is never past any of them. Messages are done in any order; offsets that no message has (the marks of
 * transactions, aborted and compacted records) are passed over.
 *
 * <p>Used by the consumer's thread and by those that settle.
 */
final class Assignment {

    static final long UNKNOWN = -1;
    static final int NOT_NOW = -1;

    private enum State {
        CURRENT,
        GIVEN_AWAY,
        ENDED
    }

    private final TopicPartition partition;
    private final @Nullable Uuid topicId;
    private final boolean inOrder;

    /** The messages that came and are not done: their offset, and which in number they were. */
    private final NavigableMap<Long, Long> open = new TreeMap<>();

    private final Queue<Long> toEmit = new ArrayDeque<>();

    /** Let go by the consumer, to be fetched again. */
    private final TreeSet<Long> givenBack = new TreeSet<>();

    /** Being fetched again. */
    private final TreeSet<Long> awaited = new TreeSet<>();

    private State state = State.CURRENT;
    private boolean checked;
    private long came;
    private long next = UNKNOWN;
    private long refetchedUpTo = UNKNOWN;
    private long committed = UNKNOWN;
    private int underWay;
    private boolean cut;
    private int round;
    private long blockedAt = UNKNOWN;
    private long most = Long.MAX_VALUE;
    private boolean full;

    /**
     * @param inOrder whether a message may only be handled once all before it are done: where one is let go, so are all that are not
     *     done, and they come again in their order. Nothing is fetched or committed before {@link #beginAt}
     */
    Assignment(TopicPartition partition, @Nullable Uuid topicId, boolean inOrder) {
        this.partition = partition;
        this.topicId = topicId;
        this.inOrder = inOrder;
        this.checked = !inOrder;
    }

    /**
     * It has been looked at, and may be fetched.
     *
     * @param committed the group's offset, or {@link #UNKNOWN}: what comes from before it now is none of the messages that were there
     */
    synchronized void beginAt(long committed) {
        checked = true;
        next = Math.max(next, committed);
    }

    synchronized boolean mayBegin() {
        return checked;
    }

    TopicPartition partition() {
        return partition;
    }

    /** Null unless messages are identified by their position. */
    @Nullable
    Uuid topicId() {
        return topicId;
    }

    /** Whether a message may be handled that was taken in this round. */
    synchronized boolean isCurrent(long offset, int itsRound) {
        return state == State.CURRENT
                && (!inOrder || (itsRound == round && (blockedAt == UNKNOWN || offset <= blockedAt)));
    }

    synchronized boolean hasEnded() {
        return state == State.ENDED;
    }

    /**
     * Notes records that the client has returned.
     *
     * @return false if they are from before what came already, and not because they are fetched again: the partition was
     *     truncated, or its topic created anew, and these are other messages
     */
    synchronized boolean fetched(List<ConsumerRecord<byte[], byte[]>> records) {
        for (ConsumerRecord<byte[], byte[]> record : records) {
            long offset = record.offset();
            if (offset >= next) {
                refetchedUpTo = UNKNOWN; // What comes from before it now is something else.
                open.put(offset, ++came);
                toEmit.add(offset);
                next = offset + 1;
            } else if (offset >= refetchedUpTo) {
                return false;
            } else if (awaited.remove(offset)) {
                toEmit.add(offset);
            }
        }
        return true;
    }

    /**
     * Whether a record is to be delivered now. It is not if it is left over from before a rebalance or a step back: then a fresh copy
     * of it follows, in its place.
     *
     * @return the round that it belongs to, or {@link #NOT_NOW}
     */
    synchronized int take(long offset) {
        Long first = toEmit.peek();
        if (state != State.CURRENT || first == null || first != offset) {
            return NOT_NOW;
        }
        toEmit.remove();
        return round;
    }

    /**
     * Notes that a message is done; false if that comes too late.
     *
     * @param room run if more may be taken now of a partition that was {@linkplain #isFull full}
     */
    boolean complete(long offset, Runnable room) {
        boolean inTime = complete(offset);
        if (inTime && hasRoomAgain()) {
            room.run();
        }
        return inTime;
    }

    private synchronized boolean hasRoomAgain() {
        boolean before = full;
        updateFull();
        return before && !full;
    }

    /** Notes that a message is done; false if that comes too late. */
    synchronized boolean complete(long offset) {
        if (state == State.ENDED) {
            return false;
        }
        open.remove(offset);
        if (blockedAt == offset) {
            blockedAt = UNKNOWN;
        }
        return true;
    }

    /** Until this message is done, none behind it is handled, even if its lane goes on without it. */
    synchronized void block(long offset) {
        blockedAt = offset;
    }

    /** Notes that a message was let go: no offset past it is committed, and it is fetched again; false if that comes too late. */
    synchronized boolean giveBack(long offset) {
        if (state == State.ENDED) {
            return false;
        }
        if (open.containsKey(offset)) {
            givenBack.add(offset);
            if (inOrder) {
                givenBack.addAll(open.keySet()); // What is before it and under way is a duplicate then.
                round++;
            }
        }
        return true;
    }

    synchronized boolean hasToStepBack() {
        return state == State.CURRENT && !givenBack.isEmpty();
    }

    /** Where to fetch from again, for what was let go; null if there is no need. What waits to be delivered comes again too. */
    synchronized @Nullable Long stepBack() {
        if (!hasToStepBack()) {
            return null;
        }
        awaited.addAll(givenBack);
        awaited.addAll(toEmit);
        givenBack.clear();
        toEmit.clear();
        refetchedUpTo = next;
        return awaited.first();
    }

    /** What should have come again before this position is not there any more: deleted by the topic's retention, or compacted. */
    synchronized List<Long> passed(long position) {
        List<Long> gone = List.copyOf(awaited.headSet(position));
        awaited.removeAll(gone);
        gone.forEach(open::remove);
        return gone;
    }

    synchronized boolean awaitsAny() {
        return !awaited.isEmpty();
    }

    /** Whether so much is done behind what is not that no more is to be taken. What was let go has to come first, or nothing ever is. */
    synchronized boolean isTooFarAhead(long maxDeferred) {
        return deferred() >= maxDeferred && awaited.isEmpty() && givenBack.isEmpty();
    }

    /**
     * Whether so many of its messages came and are not done that it is to wait, from these on until half of them are done. What was let go
     * has to come first.
     */
    synchronized boolean isFull(long mostOpen) {
        most = mostOpen;
        updateFull();
        return full && awaited.isEmpty() && givenBack.isEmpty();
    }

    private void updateFull() {
        full = open.size() >= most || (full && open.size() > most / 2);
    }

    /**
     * The offset to commit, or {@link #UNKNOWN}: that of the first message that is not done, or where the client is if all are.
     *
     * @param position where the client is, or {@link #UNKNOWN}
     */
    synchronized long committable(long position) {
        if (!checked) {
            return UNKNOWN;
        }
        return open.isEmpty() ? Math.max(next, position) : open.firstKey();
    }

    synchronized boolean isAllDone() {
        return open.isEmpty();
    }

    synchronized void committed(long offset) {
        committed = offset;
    }

    synchronized long committed() {
        return committed;
    }

    /** How many messages are done that came after one that is not. */
    synchronized long deferred() {
        return open.isEmpty() ? 0 : came + 1 - open.firstEntry().getValue() - open.size();
    }

    synchronized void handlingBegins() {
        underWay++;
    }

    synchronized void handlingEnded() {
        underWay--;
        notifyAll();
    }

    /** From now on nothing of it is begun. */
    synchronized void giveAway() {
        if (state == State.CURRENT) {
            state = State.GIVEN_AWAY;
        }
    }

    /** Nothing is begun any more, and nothing waited for; what is done by now may still be committed. */
    synchronized void cut() {
        giveAway();
        cut = true;
        notifyAll();
    }

    /** Blocks until nothing is under way, or the limit has passed, or {@link #cut}. */
    synchronized void awaitQuiet(long deadlineNanos) throws InterruptedException {
        for (long left = deadlineNanos - System.nanoTime();
                underWay > 0 && !cut && left > 0;
                left = deadlineNanos - System.nanoTime()) {
            TimeUnit.NANOSECONDS.timedWait(this, left);
        }
    }

    /** Whoever settles from now on is told that it is too late. */
    synchronized void end() {
        state = State.ENDED;
    }
}
