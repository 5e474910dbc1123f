package io.onceflux.kafka;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.Backoff;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetCommitCallback;
import org.apache.kafka.clients.consumer.RetriableCommitFailedException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** A commit goes to the broker again until it is answered. */
class CommitsTest implements Commits.Client, Watcher {

    private static final TopicPartition PARTITION = new TopicPartition("orders", 0);

    private final Assignments assignments = new Assignments(topics -> Map.of(), null, taken -> {});
    private final Commits commits = new Commits(
            this, assignments, Duration.ZERO, Backoff.between(Duration.ofNanos(1), Duration.ofNanos(1)), this);
    private final List<Long> sent = new ArrayList<>();
    private final List<OffsetCommitCallback> unanswered = new ArrayList<>();
    private final List<String> lost = new ArrayList<>();
    private boolean isWoken;

    /** A record comes and is done. */
    private void done(long offset) {
        if (assignments.of(List.of(PARTITION)).isEmpty()) {
            assignments.begin(List.of(PARTITION));
        }
        ConsumerRecord<byte[], byte[]> record = new ConsumerRecord<>("orders", 0, offset, new byte[0], new byte[0]);
        assignments.fetched(new ConsumerRecords<>(Map.of(PARTITION, List.of(record))));
        Assignment assignment = assignments.of(List.of(PARTITION)).get(0);
        assertThat(assignment.take(offset)).isZero();
        assertThat(assignment.complete(offset)).isTrue();
    }

    /** As the client does while it looks for a coordinator. */
    @Test
    void aCommitThatAWakeupEndsGoesAtTheNextPoll() {
        done(10);
        isWoken = true;

        assertThat(commits.tick()).isTrue();
        assertThat(sent).isEmpty();
        assertThat(commits.tick()).isTrue();

        assertThat(sent).containsExactly(11L);
    }

    @Test
    void aCommitThatTheBrokerRefusesForNowGoesAgain() {
        done(10);

        assertThat(commits.tick()).isTrue();
        answer(new RetriableCommitFailedException("no coordinator"));
        await().until(commits::tick); // After a pause.

        assertThat(sent).containsExactly(11L, 11L);
        assertThat(lost).hasSize(1);
    }

    @Test
    void oneCommitIsUnderWayAtATime() {
        done(10);
        assertThat(commits.tick()).isTrue();
        done(11);

        assertThat(commits.tick()).isFalse();
        answer(null);
        assertThat(commits.tick()).isTrue();

        assertThat(sent).containsExactly(11L, 12L);
    }

    private void answer(@Nullable Exception error) {
        unanswered.remove(0).onComplete(Map.of(PARTITION, new OffsetAndMetadata(sent.get(sent.size() - 1))), error);
    }

    @Override
    public void commitAsync(Map<TopicPartition, OffsetAndMetadata> offsets, OffsetCommitCallback callback) {
        if (isWoken) {
            isWoken = false;
            throw new WakeupException();
        }
        offsets.values().forEach(offset -> sent.add(offset.offset()));
        unanswered.add(callback);
    }

    @Override
    public void commitSync(Map<TopicPartition, OffsetAndMetadata> offsets, Duration limit) {
        throw new UnsupportedOperationException();
    }

    @Override
    public long position(TopicPartition partition, Duration limit) {
        return Assignment.UNKNOWN;
    }

    @Override
    public void consuming() {}

    @Override
    public void lost(String reason, Duration untilNextTry) {
        lost.add(reason);
    }
}
