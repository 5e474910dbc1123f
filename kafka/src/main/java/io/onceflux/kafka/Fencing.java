package io.onceflux.kafka;

import io.onceflux.Intake;
import io.onceflux.InvalidSetupException;
import io.onceflux.kafka.FirstRecords.Between;
import io.onceflux.postgres.OffsetTable.Partition;
import io.onceflux.postgres.OffsetTable.Place;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsResult;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.RetriableException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.publisher.Mono;

/** The part that a source has in the {@link OffsetFence} of its consumer: it compares it with the topics, and moves it past dead letters. */
final class Fencing {

    private static final Logger log = LoggerFactory.getLogger(Fencing.class);
    private static final Duration LOCK_TIMEOUT = Duration.ofSeconds(5);

    private final OffsetFence fence;
    private final Intake intake;
    private final KafkaOptions options;

    /** The id of each topic that was met, by its name. */
    private final Map<String, String> known = new ConcurrentHashMap<>();

    /** Places that the group is ahead of, and what is between was looked at. */
    private final Set<Place> lookedBehind = ConcurrentHashMap.newKeySet();

    private Fencing(OffsetFence fence, Intake intake, KafkaOptions options) {
        this.fence = fence;
        this.intake = intake;
        this.options = options;
    }

    /** Null if the consumer keeps its claims elsewhere. */
    static @Nullable Fencing of(Intake intake, KafkaOptions options) {
        return intake.claims() instanceof OffsetFence fence ? new Fencing(fence, intake, options) : null;
    }

    /**
     * Where partitions begin.
     *
     * @param committed the group's offsets
     * @param places of the fence, read after that: they may be beyond the group by then, and behind it by no message
     */
    record Beginning(Map<TopicPartition, Long> committed, List<Place> places) {

        /** 0 where the group has none. */
        private long committedOf(Place place) {
            return committed.getOrDefault(partitionOf(place), 0L);
        }

        /** The group's offset; {@link Assignment#UNKNOWN} without a place: somebody has looked into it, and it begins anew. */
        long begin(TopicPartition partition) {
            return places.stream().anyMatch(place -> partitionOf(place).equals(partition))
                    ? committed.getOrDefault(partition, Assignment.UNKNOWN)
                    : Assignment.UNKNOWN;
        }

        private Beginning of(Set<TopicPartition> partitions) {
            return new Beginning(
                    committed,
                    places.stream()
                            .filter(place -> partitions.contains(partitionOf(place)))
                            .toList());
        }
    }

    /** Where the consumer is, in all partitions that it has ever had. */
    Mono<List<Place>> places() {
        return intake.connections().use(connection -> fence.places(connection, intake.consumer()));
    }

    /** Moves the fence behind a message whose dead letter is stored. */
    Mono<Void> pass(Position position) {
        return intake.connections()
                .use(connection -> fence.pass(connection, intake.consumer(), position, LOCK_TIMEOUT));
    }

    /**
     * Compares the places with the topics, at the start. Blocks.
     *
     * @param places of the fence
     * @param topics those that are consumed
     * @throws BrokenFenceException if a topic is another than that of the places, or its log ends before them
     */
    void requireFit(Admin admin, List<Place> places, Set<String> topics) {
        Map<String, Uuid> ids = Topology.idsOf(admin, topics);
        List<Place> its = places.stream()
                .filter(place -> ids.containsKey(place.partition().topic()))
                .toList();
        its.forEach(place ->
                requireSameTopic(place.partition(), ids.get(place.partition().topic())));
        ids.forEach(this::begins);
        requireWithinTheLog(admin, its);
    }

    /**
     * Compares the places with the partitions that are now this consumer's: others have moved both since it started. Blocks.
     *
     * @throws BrokenFenceException if a topic is another than that of the places, its log ends before them, or the group would begin at its
     *     end
     */
    void requireFit(Beginning beginning, Set<TopicPartition> taken) {
        Set<String> topics = taken.stream().map(TopicPartition::topic).collect(Collectors.toSet());
        Beginning its = beginning.of(taken);
        try (Admin admin = Topology.admin(options)) {
            requireFit(admin, its.places(), topics);
        }
        requireNoneAtTheEnd(its);
    }

    /**
     * The messages between the fence and the group's offset: whoever moved the group, or brought an older state of the database back, may
     * not know that the first message behind them counts them as done. Once for each. Blocks.
     */
    void warnOfPassedOver(Beginning beginning, Set<TopicPartition> taken) {
        List<Place> behind = beginning.of(taken).places().stream()
                .filter(place -> beginning.committedOf(place) > place.nextOffset())
                .filter(lookedBehind::add)
                .toList();
        if (behind.isEmpty()) {
            return;
        }
        try (FirstRecords records = FirstRecords.reading(options)) {
            for (Place place : behind) {
                long committed = beginning.committedOf(place);
                Between between = records.look(partitionOf(place), place.nextOffset(), committed);
                if (between != Between.NOTHING) {
                    intake.listener().onWarning(passedOver(place, committed, between));
                }
            }
        }
    }

    private String passedOver(Place place, long committed, Between between) {
        return ("of %s, consumer '%s' has done what is before offset %d (%s), but group '%s' is at %d%s, and the next message will count what is"
                        + " between as done. It is, if a table of claims has had the fence's place meanwhile. Otherwise stop the"
                        + " consumer and reset the group to %d")
                .formatted(
                        partitionOf(place),
                        intake.consumer(),
                        place.nextOffset(),
                        fence,
                        options.groupId(),
                        committed,
                        between == Between.UNKNOWN
                                ? ", whether or not there are messages between (they could not be read)"
                                : "",
                        place.nextOffset());
    }

    private void requireWithinTheLog(Admin admin, List<Place> places) {
        Map<TopicPartition, OffsetSpec> asked = new HashMap<>();
        places.forEach(place -> asked.put(partitionOf(place), OffsetSpec.latest()));
        ListOffsetsResult ends = admin.listOffsets(asked);
        for (Place place : places) {
            Long end = endOf(ends, partitionOf(place));
            if (end != null && end < place.nextOffset()) {
                throw beyondTheLog(partitionOf(place), place.nextOffset(), end);
            }
        }
    }

    /** Null for one that does not answer, such as without a leader: the others go on, and it is looked at when its messages come. */
    private static @Nullable Long endOf(ListOffsetsResult ends, TopicPartition partition) {
        try {
            return Topology.get(ends.partitionResult(partition)).offset();
        } catch (RetriableException e) {
            log.debug("where {} ends is not known yet", partition, e);
            return null;
        }
    }

    /** What is between the fence and the end would be passed over for good by the first message that comes. */
    private void requireNoneAtTheEnd(Beginning beginning) {
        if (!ClientSettings.startsAtTheEnd(options)) {
            return;
        }
        for (Place place : beginning.places()) {
            if (!beginning.committed().containsKey(partitionOf(place))) {
                throw new BrokenFenceException(
                        ("Group '%s' has no offset for %s, and auto.offset.reset is not earliest: it would begin behind messages, although consumer '%s'"
                                        + " has done only what is before offset %d. Use earliest, or set the group's offset.")
                                .formatted(
                                        options.groupId(), partitionOf(place), intake.consumer(), place.nextOffset()));
            }
        }
    }

    private BrokenFenceException beyondTheLog(TopicPartition partition, long done, long end) {
        return new BrokenFenceException(
                ("Of %s, consumer '%s' has done what is before offset %d, but its log ends at %d: it was truncated, or restored"
                                + " from a backup, and the next messages would pass for duplicates. Look into it; then"
                                + " OffsetFence.forget(connections, \"%s\", \"%s\") begins anew.")
                        .formatted(partition, intake.consumer(), done, end, intake.consumer(), partition.topic()));
    }

    /** The log of a partition was truncated while it was consumed: it goes on at an offset that was done, with other messages. */
    BrokenFenceException wentBack(TopicPartition partition, long offset) {
        return new BrokenFenceException(
                ("%s goes on at offset %d, which consumer '%s' has had before, and its messages would pass for duplicates. Either somebody has set the"
                                + " offset of group '%s' beyond the end of the log: reset it to where the fence is. Or the log was truncated: look into"
                                + " it; then OffsetFence.forget(connections, \"%s\", \"%s\") begins anew, and what comes again is applied again.")
                        .formatted(
                                partition,
                                offset,
                                intake.consumer(),
                                options.groupId(),
                                intake.consumer(),
                                partition.topic()));
    }

    /** Whether the fence is behind a message already: somebody else has done it. */
    Mono<Boolean> hasPassed(Position position) {
        return places().map(places -> places.stream()
                .anyMatch(place -> place.partition().topicId().equals(position.topicId())
                        && place.partition().partition() == position.partition()
                        && place.nextOffset() > position.offset()));
    }

    /**
     * Notes the topic of a partition that is now this consumer's.
     *
     * @throws BrokenFenceException if it is another than the one of that name before
     */
    void begins(String topic, @Nullable Uuid topicId) {
        if (topicId == null || topicId.equals(Uuid.ZERO_UUID)) {
            throw new BrokenFenceException(
                    "Topic '%s' at %s has no id, so an offset fence could not tell it from one made anew: brokers have ids since 2.8"
                            .formatted(topic, options.broker()));
        }
        String before = known.putIfAbsent(topic, topicId.toString());
        if (before != null) {
            requireSameTopic(new Partition(topic, before, 0), topicId);
        }
        fence.knows(List.of(new Partition(topic, topicId.toString(), 0)));
    }

    private void requireSameTopic(Partition done, @Nullable Uuid now) {
        if (!done.topicId().equals(String.valueOf(now))) {
            throw new BrokenFenceException(
                    ("Topic '%s' at %s was deleted and made again (its id is %s, not %s): consumer '%s' cannot tell which of its messages"
                                    + " it has done. Look into it; then OffsetFence.forget(connections, \"%s\", \"%s\") begins anew.")
                            .formatted(
                                    done.topic(),
                                    options.broker(),
                                    now,
                                    done.topicId(),
                                    intake.consumer(),
                                    intake.consumer(),
                                    done.topic()));
        }
    }

    private static TopicPartition partitionOf(Place place) {
        return new TopicPartition(place.partition().topic(), place.partition().partition());
    }

    /** Nobody can say what is done: the consumer stops, also if it has run for long. */
    static final class BrokenFenceException extends InvalidSetupException {
        BrokenFenceException(String sentence) {
            super(sentence);
        }
    }
}
