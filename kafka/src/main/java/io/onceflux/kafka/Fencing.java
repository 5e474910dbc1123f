package io.onceflux.kafka;

import io.onceflux.Intake;
import io.onceflux.InvalidSetupException;
import io.onceflux.postgres.OffsetTable.Partition;
import io.onceflux.postgres.OffsetTable.Place;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/** The part that a source has in the {@link OffsetFence} of its consumer: it compares it with the topics, and moves it past dead letters. */
final class Fencing {

    private static final Duration LOCK_TIMEOUT = Duration.ofSeconds(5);

    private final OffsetFence fence;
    private final Intake intake;
    private final KafkaOptions options;

    /** The id of each topic that was met, by its name. */
    private final Map<String, String> known = new ConcurrentHashMap<>();

    private Fencing(OffsetFence fence, Intake intake, KafkaOptions options) {
        this.fence = fence;
        this.intake = intake;
        this.options = options;
    }

    /** Null if the consumer keeps its claims elsewhere. */
    static @Nullable Fencing of(Intake intake, KafkaOptions options) {
        return intake.claims() instanceof OffsetFence fence ? new Fencing(fence, intake, options) : null;
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
     * Compares the places with the topics. Blocks.
     *
     * @param places that were read before
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
        Map<TopicPartition, OffsetSpec> asked = new HashMap<>();
        its.forEach(place -> asked.put(partitionOf(place), OffsetSpec.latest()));
        Map<TopicPartition, ListOffsetsResultInfo> ends = asked.isEmpty()
                ? Map.of()
                : Topology.get(admin.listOffsets(asked).all());
        for (Place place : its) {
            ListOffsetsResultInfo end = ends.get(partitionOf(place));
            if (end != null && end.offset() < place.nextOffset()) {
                throw new BrokenFenceException(
                        ("Of %s, consumer '%s' has done what is before offset %d, but its log ends at %d: it was truncated, or restored"
                                        + " from a backup, and the next messages would pass for duplicates. Look into it; then"
                                        + " OffsetFence.forget(connections, \"%s\", \"%s\") begins anew.")
                                .formatted(
                                        partitionOf(place),
                                        intake.consumer(),
                                        place.nextOffset(),
                                        end.offset(),
                                        intake.consumer(),
                                        place.partition().topic()));
            }
        }
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
