package io.onceflux.kafka;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The partitions that are this consumer's now. Changed by the consumer's thread, but for its end; asked by any. */
final class Assignments {

    private static final Logger log = LoggerFactory.getLogger(Assignments.class);

    private final Map<TopicPartition, Assignment> current = new ConcurrentHashMap<>();
    private final Function<Set<String>, Map<String, Uuid>> topicIds;
    private final @Nullable Fencing fencing;
    private final Consumer<List<Assignment>> takenOver;
    private volatile boolean intakeEnded;
    private volatile boolean cut;

    /**
     * @param topicIds finds the ids of topics, blocking; for topics that it does not know there is none
     * @param fencing the consumer's offset fence: messages of a partition then follow each other; null if there is none
     * @param takenOver told of partitions that are this consumer's from now on
     */
    Assignments(
            Function<Set<String>, Map<String, Uuid>> topicIds,
            @Nullable Fencing fencing,
            Consumer<List<Assignment>> takenOver) {
        this.topicIds = topicIds;
        this.fencing = fencing;
        this.takenOver = takenOver;
    }

    /**
     * A record that is to be delivered.
     *
     * @param assignment its partition
     * @param round of {@link Assignment#take}
     */
    record Taken(Assignment assignment, int round) {}

    void begin(Collection<TopicPartition> partitions) {
        Map<String, Uuid> ids =
                topicIds.apply(partitions.stream().map(TopicPartition::topic).collect(Collectors.toSet()));
        takenOver.accept(partitions.stream()
                .map(partition -> replace(partition, ids.get(partition.topic())))
                .toList());
    }

    private Assignment replace(TopicPartition partition, @Nullable Uuid topicId) {
        if (fencing != null) {
            fencing.begins(partition.topic(), topicId);
        }
        Assignment fresh = new Assignment(partition, topicId, fencing != null);
        Assignment old = current.put(partition, fresh);
        if (old != null) {
            old.end();
        }
        return fresh;
    }

    Collection<Assignment> all() {
        return current.values();
    }

    List<Assignment> of(Collection<TopicPartition> partitions) {
        return partitions.stream()
                .map(current::get)
                .filter(Objects::nonNull)
                .map(Objects::requireNonNull)
                .toList();
    }

    void end(Collection<Assignment> ending) {
        ending.forEach(assignment -> {
            assignment.end();
            current.remove(assignment.partition(), assignment);
        });
    }

    /** The topics of those that are this consumer's. */
    Set<String> topics() {
        return current.keySet().stream().map(TopicPartition::topic).collect(Collectors.toSet());
    }

    /**
     * Topics were deleted and made again: their partitions begin anew.
     *
     * @return these partitions
     * @throws Fencing.BrokenFenceException with an offset fence: nobody can say what is done
     */
    Set<TopicPartition> beginAnew(Set<String> topics) {
        Set<TopicPartition> partitions = current.keySet().stream()
                .filter(partition -> topics.contains(partition.topic()))
                .collect(Collectors.toSet());
        if (!partitions.isEmpty()) {
            begin(partitions);
        }
        return partitions;
    }

    /** Notes what the client has returned. */
    void fetched(ConsumerRecords<byte[], byte[]> records) {
        fetched(records, Set.of());
    }

    /**
     * The same, but for some partitions.
     *
     * @param others partitions whose records are not noted, and so not delivered: they come again
     */
    void fetched(ConsumerRecords<byte[], byte[]> records, Set<TopicPartition> others) {
        for (TopicPartition partition : records.partitions()) {
            Assignment assignment = others.contains(partition) ? null : current.get(partition);
            List<ConsumerRecord<byte[], byte[]>> its = records.records(partition);
            if (assignment != null && !assignment.fetched(its)) {
                log.warn(
                        "{} begins again at offset {}: it was truncated, or created anew",
                        partition,
                        its.get(0).offset());
                Uuid id = assignment.topicId() == null
                        ? null
                        : topicIds.apply(Set.of(partition.topic())).get(partition.topic());
                Assignment anew = replace(partition, id);
                if (fencing != null) {
                    throw fencing.wentBack(partition, its.get(0).offset());
                }
                anew.fetched(its);
            }
        }
    }

    /** Null if a record is not to be delivered, or not now. */
    @Nullable
    Taken take(ConsumerRecord<?, ?> record) {
        if (intakeEnded || cut) {
            return null;
        }
        Assignment assignment = current.get(new TopicPartition(record.topic(), record.partition()));
        int round = assignment == null ? Assignment.NOT_NOW : assignment.take(record.offset());
        return assignment == null || round == Assignment.NOT_NOW ? null : new Taken(assignment, round);
    }

    /** Nothing is delivered any more; answers are still taken. */
    void endIntake() {
        intakeEnded = true;
    }

    boolean isIntakeEnded() {
        return intakeEnded;
    }

    /** Nothing is waited for any more. From any thread. */
    void cut() {
        cut = true;
        current.values().forEach(Assignment::cut);
    }

    boolean isCut() {
        return cut;
    }

    /**
     * Those that must wait: because they have not been looked at yet, because too much is done behind a message that is not, or because they
     * would take the place of the others.
     *
     * @param mostOpen how many messages of a partition may be here and not done
     */
    Set<TopicPartition> waiting(long maxDeferred, long mostOpen) {
        Set<TopicPartition> waiting = new HashSet<>();
        for (Assignment assignment : new ArrayList<>(current.values())) {
            if (!assignment.mayBegin() || assignment.isTooFarAhead(maxDeferred) || assignment.isFull(mostOpen)) {
                waiting.add(assignment.partition());
            }
        }
        return waiting;
    }
}
