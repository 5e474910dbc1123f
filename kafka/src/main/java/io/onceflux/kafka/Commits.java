package io.onceflux.kafka;

import io.onceflux.Backoff;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetCommitCallback;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.WakeupException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Commits what is done, at an interval and when partitions are given away. Used by the consumer's thread only.
 *
 * <p>A commit that fails is made again: at once where that helps, else after a pause that grows. It is how a broker that is away is
 * noticed, so an idle consumer commits now and then too.
 */
final class Commits {

    private static final Logger log = LoggerFactory.getLogger(Commits.class);
    private static final Duration IDLE_INTERVAL = Duration.ofSeconds(10);
    private static final Duration SYNC_LIMIT = Duration.ofSeconds(5);
    private static final int WAKEUPS = 3;

    private final Client client;
    private final Assignments assignments;
    private final Duration interval;
    private final Backoff backoff;
    private final Watcher watcher;
    private long nextAt = System.nanoTime();
    private long idleAt = nextAt + IDLE_INTERVAL.toNanos();
    private boolean underWay;
    private int failures;
    private @Nullable RuntimeException fatal;

    Commits(Client client, Assignments assignments, Duration interval, Backoff backoff, Watcher watcher) {
        this.client = client;
        this.assignments = assignments;
        this.interval = interval;
        this.backoff = backoff;
        this.watcher = watcher;
    }

    /** What is needed of the Kafka client. */
    interface Client {
        void commitAsync(Map<TopicPartition, OffsetAndMetadata> offsets, OffsetCommitCallback callback);

        void commitSync(Map<TopicPartition, OffsetAndMetadata> offsets, Duration limit);

        long position(TopicPartition partition, Duration limit);
    }

    /** Whether it is time again; if so, what is done is on its way to the broker afterwards. */
    boolean tick() {
        if (fatal != null) {
            throw fatal;
        }
        long now = System.nanoTime();
        if (underWay || now - nextAt < 0) {
            return false;
        }
        boolean idle = now - idleAt >= 0;
        nextAt = now + interval.toNanos();
        Map<TopicPartition, OffsetAndMetadata> due = due(assignments.all(), idle);
        if (!due.isEmpty()) {
            idleAt = now + IDLE_INTERVAL.toNanos();
            send(due);
        }
        return true;
    }

    /** While no coordinator is known, the client looks for one first, and a wakeup ends that: then nothing was sent, and no answer comes. */
    private void send(Map<TopicPartition, OffsetAndMetadata> due) {
        underWay = true;
        try {
            client.commitAsync(due, this::answered);
        } catch (WakeupException e) {
            underWay = false;
            nextAt = System.nanoTime();
            log.trace("woken", e);
        }
    }

    /**
     * Blocks for some seconds at most. What cannot be committed is delivered again, and is then a duplicate.
     *
     * @return false where a rebalance is in the way, and nothing is committed until it is over
     */
    boolean now(Collection<Assignment> partitions) {
        Map<TopicPartition, OffsetAndMetadata> due = due(partitions, false);
        if (due.isEmpty()) {
            return true;
        }
        for (int wakeups = 0; wakeups < WAKEUPS; wakeups++) {
            try {
                client.commitSync(due, SYNC_LIMIT);
                note(due);
                return true;
            } catch (WakeupException e) { // Somebody asked for more messages meanwhile.
                log.trace("woken", e);
            } catch (RebalanceInProgressException e) {
                log.debug("a rebalance is in the way of a commit", e);
                return false;
            } catch (RuntimeException e) {
                log.warn("offsets could not be committed, so their messages come again: {}", Refusals.wordsOf(e));
                return true;
            }
        }
        return true;
    }

    private Map<TopicPartition, OffsetAndMetadata> due(Collection<Assignment> partitions, boolean also) {
        Map<TopicPartition, OffsetAndMetadata> due = new HashMap<>();
        for (Assignment assignment : partitions) {
            long offset = assignment.committable(
                    assignment.isAllDone() ? position(assignment.partition()) : Assignment.UNKNOWN);
            if (offset >= 0 && (also || offset != assignment.committed())) {
                due.put(assignment.partition(), new OffsetAndMetadata(offset));
            }
        }
        return due;
    }

    /** Where the client is, if it knows. */
    private long position(TopicPartition partition) {
        try {
            return client.position(partition, Duration.ZERO);
        } catch (TimeoutException | WakeupException | IllegalStateException e) {
            return Assignment.UNKNOWN; // Not known yet, or just taken away.
        }
    }

    private void answered(Map<TopicPartition, OffsetAndMetadata> offsets, @Nullable Exception error) {
        underWay = false;
        if (error == null) {
            note(offsets);
            if (failures > 0) {
                failures = 0;
                watcher.consuming();
            }
        } else if (error instanceof RebalanceInProgressException) {
            log.debug("a rebalance came between", error);
        } else if (error instanceof RetriableException || error instanceof CommitFailedException) {
            // The latter: the group went on without this consumer. The client joins it again by itself.
            Duration pause = backoff.after(++failures);
            nextAt = System.nanoTime() + pause.toNanos();
            watcher.lost("offsets cannot be committed: " + Refusals.wordsOf(error), pause);
        } else {
            fatal = error instanceof RuntimeException e ? e : new IllegalStateException(error);
        }
    }

    private void note(Map<TopicPartition, OffsetAndMetadata> offsets) {
        offsets.forEach((partition, offset) ->
                assignments.of(List.of(partition)).forEach(assignment -> assignment.committed(offset.offset())));
    }
}
