package io.onceflux.kafka;

import io.onceflux.Backoff;
import java.time.Duration;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetCommitCallback;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.WakeupException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/**
 * The Kafka client's consumer, which keeps the offsets itself while Reactor Kafka polls it: it notes what comes, commits what is
 * done, and gives partitions away in good order. Why not Reactor Kafka's own commits: docs/decisions/0008.
 *
 * <p>All of it runs on the thread that polls, which may block: it is no event loop, and a rebalance has to wait.
 */
final class WatchedConsumer extends KafkaConsumer<byte[], byte[]> {

    private static final Logger log = LoggerFactory.getLogger(WatchedConsumer.class);

    private static final Duration ANSWER_LIMIT = Duration.ofSeconds(5);

    /** With the time that closing takes it is within that which the source gives to all of it. */
    private static final Duration REBALANCE_LIMIT = Duration.ofSeconds(5);

    private final Assignments assignments;
    private final KafkaOptions options;
    private final long maxDeferred;
    private final long mostOpen;
    private final Watcher watcher;
    private final Commits commits;
    private final TopicIdentity identity;
    private final Sinks.Empty<Void> closed = Sinks.empty();
    private final Set<TopicPartition> pausedByReceiver = new HashSet<>();
    private Set<TopicPartition> pausedHere = Set.of();
    private boolean joined;
    private boolean closing;

    /** Whether all records before the client's positions have been noted. */
    private boolean isPositionSeen = true;

    WatchedConsumer(
            Map<String, Object> settings,
            KafkaOptions options,
            Assignments assignments,
            long maxDeferred,
            long mostOpen,
            Watcher watcher) {
        super(settings);
        this.options = options;
        this.assignments = assignments;
        this.maxDeferred = maxDeferred;
        this.mostOpen = mostOpen;
        this.watcher = watcher;
        this.identity = new TopicIdentity(() -> Topology.admin(options));
        this.commits = new Commits(
                new CommitCalls(),
                assignments,
                options.commitInterval(),
                Backoff.between(options.minBackoff(), options.maxBackoff()),
                watcher);
    }

    /** Completes when the consumer has left the group, or has tried to for as long as it was allowed. */
    Mono<Void> whenClosed() {
        return closed.asMono();
    }

    @Override
    public void subscribe(Collection<String> topics, ConsumerRebalanceListener receiver) {
        super.subscribe(topics, new Rebalance(receiver));
    }

    @Override
    public void subscribe(Pattern pattern, ConsumerRebalanceListener receiver) {
        super.subscribe(pattern, new Rebalance(receiver));
    }

    /**
     * Whoever polls stops at an {@link Error} without a word, and so would the consumer. Once a poll has failed, the client may be beyond
     * records that nobody has seen.
     */
    @Override
    public ConsumerRecords<byte[], byte[]> poll(Duration timeout) {
        try {
            return watchedPoll(timeout);
        } catch (WakeupException e) {
            throw e; // Before anything was fetched.
        } catch (RuntimeException e) {
            isPositionSeen = false;
            throw e;
        } catch (Error e) {
            isPositionSeen = false;
            throw new IllegalStateException("polling failed with " + e, e);
        }
    }

    private ConsumerRecords<byte[], byte[]> watchedPoll(Duration timeout) {
        lookAtTopics();
        if (commits.tick() && !assignments.isIntakeEnded()) {
            assignments.all().forEach(this::stepBack);
        }
        holdBack();
        ConsumerRecords<byte[], byte[]> records = super.poll(timeout);
        assignments.fetched(records, ofOtherTopics(records));
        assignments.all().forEach(this::forgetWhatIsGone);
        if (!joined && groupMetadata().generationId() > 0) {
            joined = true;
            watcher.consuming();
        }
        return records;
    }

    /** Before the offsets of another topic are committed to it. */
    private void lookAtTopics() {
        if (!assignments.isIntakeEnded()) {
            toTheBeginningOf(identity.madeAnewLately(assignments.topics()));
        }
    }

    /** Which of the records are of another topic than before. Where their positions identify them, they must not pass for its. */
    private Set<TopicPartition> ofOtherTopics(ConsumerRecords<byte[], byte[]> records) {
        if (records.isEmpty() || assignments.isIntakeEnded()) {
            return Set.of();
        }
        return toTheBeginningOf(
                options.idSource() == KafkaOptions.IdSource.POSITION
                        ? identity.madeAnewNow(assignments.topics())
                        : identity.madeAnewLately(assignments.topics()));
    }

    /** Whatever auto.offset.reset says: of these topics nothing was seen. */
    private Set<TopicPartition> toTheBeginningOf(Set<String> topics) {
        if (topics.isEmpty()) {
            return Set.of();
        }
        Set<TopicPartition> partitions = assignments.beginAnew(topics);
        partitions.retainAll(assignment());
        if (!partitions.isEmpty()) { // Of none would be of all.
            seekToBeginning(partitions);
        }
        log.warn("topics {} were deleted and made again: they are consumed from their beginning", topics);
        return partitions;
    }

    /**
     * To what was let go. At the commit interval, so that a consumer that lets go of everything at once does not spin. Not to what is
     * deleted: auto.offset.reset might answer with the end of the partition.
     */
    private void stepBack(Assignment assignment) {
        if (!assignment.hasToStepBack()) {
            return;
        }
        TopicPartition partition = assignment.partition();
        try {
            long begin = beginningOffsets(List.of(partition), ANSWER_LIMIT).getOrDefault(partition, 0L);
            Long offset = assignment.stepBack();
            if (offset != null) {
                seek(partition, Math.max(offset, begin));
            }
        } catch (TimeoutException | WakeupException e) {
            log.debug("stepping back has to wait", e);
        }
    }

    private void forgetWhatIsGone(Assignment assignment) {
        if (!assignment.awaitsAny()) {
            return;
        }
        try {
            List<Long> gone = assignment.passed(position(assignment.partition(), Duration.ZERO));
            if (!gone.isEmpty()) {
                log.warn("{}: let go and now deleted from the topic: offsets {}", assignment.partition(), gone);
            }
        } catch (TimeoutException | WakeupException | IllegalStateException e) {
            log.trace("the position is not known yet", e);
        }
    }

    /** On top of what Reactor Kafka pauses for want of demand, and after it, because it resumes everything. */
    private void holdBack() {
        Set<TopicPartition> assigned = assignment();
        Set<TopicPartition> hold =
                new HashSet<>(assignments.isIntakeEnded() ? assigned : assignments.waiting(maxDeferred, mostOpen));
        hold.retainAll(assigned);
        Set<TopicPartition> release = new HashSet<>(pausedHere);
        release.removeAll(hold);
        release.removeAll(pausedByReceiver);
        release.retainAll(assigned);
        if (!hold.isEmpty()) {
            super.pause(hold);
        }
        if (!release.isEmpty()) {
            super.resume(release);
        }
        pausedHere = hold;
    }

    @Override
    public void pause(Collection<TopicPartition> partitions) {
        pausedByReceiver.addAll(partitions);
        super.pause(partitions);
    }

    @Override
    public void resume(Collection<TopicPartition> partitions) {
        pausedByReceiver.removeAll(partitions);
        super.resume(partitions);
    }

    @Override
    public void close(Duration timeout) {
        try {
            closing = true;
            assignments.cut();
            assignments.endIntake();
            if (!commits.now(assignments.all()) && !commitBehindRebalance()) {
                log.warn("a rebalance has lasted for too long for a commit, so what was done meanwhile comes again");
            }
            assignments.end(List.copyOf(assignments.all()));
            super.close(timeout);
        } finally {
            identity.close();
            closed.emitEmpty((signal, result) -> false); // Closing may be tried again.
        }
    }

    /** The client commits nothing between joining again and being told its partitions, which comes by polling. */
    private boolean commitBehindRebalance() {
        boolean committed;
        long deadline = System.nanoTime() + REBALANCE_LIMIT.toNanos();
        do {
            try {
                holdBack();
                isPositionSeen &= super.poll(Duration.ofMillis(50)).isEmpty();
            } catch (WakeupException e) { // Before anything was fetched.
                log.trace("woken", e);
            }
            committed = commits.now(assignments.all());
        } while (!committed && System.nanoTime() - deadline < 0);
        return committed;
    }

    private void giveAway(Collection<TopicPartition> partitions) {
        List<Assignment> leaving = assignments.of(partitions);
        leaving.forEach(Assignment::giveAway);
        long deadline = System.nanoTime() + options.drainLimit().toNanos();
        try {
            for (Assignment assignment : leaving) {
                assignment.awaitQuiet(deadline);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        if (!commits.now(leaving)) {
            log.warn("a rebalance is in the way of a commit, so what was done of {} comes again", partitions);
        }
        assignments.end(leaving);
        forgetPauses(partitions);
    }

    private void forgetPauses(Collection<TopicPartition> partitions) {
        pausedByReceiver.removeAll(partitions);
        Set<TopicPartition> rest = new HashSet<>(pausedHere);
        rest.removeAll(partitions);
        pausedHere = rest;
    }

    /** What Reactor Kafka wants to know is passed on. */
    private final class Rebalance implements ConsumerRebalanceListener {

        private final ConsumerRebalanceListener receiver;

        Rebalance(ConsumerRebalanceListener receiver) {
            this.receiver = receiver;
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            assignments.begin(partitions);
            receiver.onPartitionsAssigned(partitions);
            holdBack(); // The same poll goes on to fetch.
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            giveAway(partitions);
            receiver.onPartitionsRevoked(partitions);
        }

        /** Somebody else may have them already: what is under way is delivered there again, and one of the two is a duplicate. */
        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            assignments.end(assignments.of(partitions));
            forgetPauses(partitions);
            joined = false;
            if (!closing) {
                watcher.lost(
                        "the group went on without this consumer, and its partitions " + partitions + " are lost",
                        Duration.ZERO);
            }
            receiver.onPartitionsRevoked(partitions);
        }
    }

    private final class CommitCalls implements Commits.Client {

        @Override
        public void commitAsync(Map<TopicPartition, OffsetAndMetadata> offsets, OffsetCommitCallback callback) {
            WatchedConsumer.this.commitAsync(offsets, callback);
        }

        @Override
        public void commitSync(Map<TopicPartition, OffsetAndMetadata> offsets, Duration limit) {
            WatchedConsumer.this.commitSync(offsets, limit);
        }

        @Override
        public long position(TopicPartition partition, Duration limit) {
            return isPositionSeen ? WatchedConsumer.this.position(partition, limit) : Assignment.UNKNOWN;
        }
    }
}
