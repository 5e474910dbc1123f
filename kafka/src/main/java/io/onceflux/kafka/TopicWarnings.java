package io.onceflux.kafka;

import io.onceflux.ConsumerListener;
import io.onceflux.Intake;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.errors.ApiException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Kafka deletes messages whether they were handled or not, and a group's offsets too: warns where that has happened, and where it may happen
 * soon; and where it keeps messages for longer than the consumer keeps its claims. What the user has no right to look at is not warned of.
 * Blocks.
 */
final class TopicWarnings {

    private static final Logger log = LoggerFactory.getLogger(TopicWarnings.class);
    private static final Duration SHORT_RETENTION = Duration.ofDays(1);

    private final KafkaOptions options;
    private final Intake intake;
    private final @Nullable Duration claimsKept;
    private final boolean claimsAreInPartitions;
    private final boolean hasClaimed;
    private final ConsumerListener listener;

    /** @param hasClaimed whether the consumer is known to have claimed messages before, and so cannot be new */
    TopicWarnings(KafkaOptions options, Intake intake, boolean hasClaimed) {
        this.options = options;
        this.intake = intake;
        this.claimsKept = intake.claimsKept();
        this.claimsAreInPartitions = intake.claims() != null && intake.claims().haveBuckets();
        this.hasClaimed = hasClaimed;
        this.listener = intake.listener();
    }

    static TopicWarnings of(KafkaOptions options, Intake intake) {
        return new TopicWarnings(options, intake, false);
    }

    void tell(Admin admin, Collection<TopicDescription> topics) {
        if (topics.isEmpty()) {
            listener.onWarning("no topic at %s is like '%s' yet".formatted(options.broker(), options.pattern()));
            return;
        }
        ifAllowed(() -> tellOfRetention(admin, topics));
        ifAllowed(() -> tellOfOffsets(admin, topics));
        if (!intake.keepsDeadLetters()) {
            ifAllowed(() -> tellOfDeadLetters(admin, topics));
        }
    }

    private void tellOfDeadLetters(Admin admin, Collection<TopicDescription> topics) {
        Set<String> there = Topology.get(admin.listTopics().names());
        Set<String> names = topics.stream()
                .map(topic -> options.deadLetterTopicOf(topic.name()))
                .filter(there::contains)
                .collect(Collectors.toSet());
        configsOf(admin, names).forEach(this::tellOfDeadLetters);
    }

    private void tellOfDeadLetters(String topic, Config config) {
        String policy = value(config, TopicConfig.CLEANUP_POLICY_CONFIG, "delete");
        long millis = Long.parseLong(value(config, TopicConfig.RETENTION_MS_CONFIG, "-1"));
        if (policy.contains("compact")) {
            listener.onWarning(
                    ("dead-letter topic '%s' is compacted (cleanup.policy=%s): a dead letter that is followed by one with the same key may be"
                                    + " deleted before anybody has looked at it")
                            .formatted(topic, policy));
        }
        if (policy.contains("delete") && millis >= 0 && millis < SHORT_RETENTION.toMillis()) {
            listener.onWarning(
                    "dead-letter topic '%s' keeps messages for %s only (retention.ms): what nobody has looked at by then is lost"
                            .formatted(topic, Duration.ofMillis(millis)));
        }
    }

    private void tellOfRetention(Admin admin, Collection<TopicDescription> topics) {
        configsOf(admin, topics.stream().map(TopicDescription::name).collect(Collectors.toSet()))
                .forEach(this::tellOf);
    }

    private static Map<String, Config> configsOf(Admin admin, Set<String> topics) {
        List<ConfigResource> asked = topics.stream()
                .map(name -> new ConfigResource(ConfigResource.Type.TOPIC, name))
                .toList();
        return Topology.get(admin.describeConfigs(asked).all()).entrySet().stream()
                .collect(Collectors.toMap(entry -> entry.getKey().name(), Map.Entry::getValue));
    }

    private void tellOf(String topic, Config config) {
        String policy = value(config, TopicConfig.CLEANUP_POLICY_CONFIG, "delete");
        long millis = Long.parseLong(value(config, TopicConfig.RETENTION_MS_CONFIG, "-1"));
        long bytes = Long.parseLong(value(config, TopicConfig.RETENTION_BYTES_CONFIG, "-1"));
        if (policy.contains("compact")) {
            listener.onWarning(
                    ("topic '%s' is compacted (cleanup.policy=%s): a message that is followed by one with the same key may"
                                    + " be deleted before it is handled")
                            .formatted(topic, policy));
        }
        if (policy.contains("delete") && millis >= 0 && millis < SHORT_RETENTION.toMillis()) {
            listener.onWarning(
                    ("topic '%s' keeps messages for %s only (retention.ms): what is not handled by then, as in an outage,"
                                    + " is deleted and lost")
                            .formatted(topic, Duration.ofMillis(millis)));
        }
        tellOfClaims(topic, policy, millis < 0 ? millis : millis + segmentMillis(config));
        if (policy.contains("delete") && bytes >= 0) {
            listener.onWarning(
                    ("topic '%s' keeps %d bytes a partition (retention.bytes): what is beyond that is deleted and lost,"
                                    + " handled or not")
                            .formatted(topic, bytes));
        }
    }

    /** A message stays as long as the newest one of its segment. */
    private static long segmentMillis(Config config) {
        return Long.parseLong(value(config, TopicConfig.SEGMENT_MS_CONFIG, "604800000"));
    }

    /** A replay reads from the first message that is there. */
    private void tellOfClaims(String topic, String policy, long millis) {
        boolean forEver = !policy.contains("delete") || millis < 0;
        if (claimsKept != null && (forEver || millis > claimsKept.toMillis())) {
            listener.onWarning(
                    "topic '%s' keeps messages %s, but claims are kept for %s: where the group is set back to what is older, that %s"
                            .formatted(
                                    topic,
                                    forEver ? "for ever" : "for up to " + Duration.ofMillis(millis),
                                    claimsKept,
                                    claimsAreInPartitions ? "becomes dead letters" : "is applied again"));
        }
    }

    private static String value(Config config, String name, String otherwise) {
        String value = config.get(name) == null ? null : config.get(name).value();
        return value == null ? otherwise : value;
    }

    private void tellOfOffsets(Admin admin, Collection<TopicDescription> topics) {
        Map<TopicPartition, Long> committed = Topology.committed(admin, options.groupId());
        for (TopicDescription topic : topics) {
            Set<TopicPartition> partitions = topic.partitions().stream()
                    .map(partition -> new TopicPartition(topic.name(), partition.partition()))
                    .collect(Collectors.toSet());
            Map<TopicPartition, Long> first = offsets(admin, partitions, OffsetSpec.earliest());
            Map<TopicPartition, Long> end = offsets(admin, partitions, OffsetSpec.latest());
            tellOfWhatIsGone(committed, first);
            tellOfWhatIsNotThere(committed, end);
            tellOfMissingOffsets(topic.name(), committed, first, end);
        }
    }

    private static Map<TopicPartition, Long> offsets(Admin admin, Set<TopicPartition> partitions, OffsetSpec which) {
        Map<TopicPartition, OffsetSpec> asked =
                partitions.stream().collect(Collectors.toMap(partition -> partition, partition -> which));
        return Topology.get(admin.listOffsets(asked).all()).entrySet().stream()
                .collect(Collectors.toMap(
                        Map.Entry::getKey, entry -> entry.getValue().offset()));
    }

    private void tellOfWhatIsGone(Map<TopicPartition, Long> committed, Map<TopicPartition, Long> first) {
        first.forEach((partition, begin) -> {
            Long offset = committed.get(partition);
            if (offset != null && offset < begin) {
                listener.onWarning(
                        ("of %s, offsets %d to %d were deleted by the topic's retention before group '%s' had handled them:"
                                        + " their messages are lost")
                                .formatted(partition, offset, begin - 1, options.groupId()));
            }
        });
    }

    private void tellOfWhatIsNotThere(Map<TopicPartition, Long> committed, Map<TopicPartition, Long> end) {
        end.forEach((partition, last) -> {
            Long offset = committed.get(partition);
            if (offset != null && offset > last) {
                listener.onWarning(
                        ("of %s, group '%s' is at offset %d, but the log ends at %d: somebody has set the group's offset, the log was truncated, or"
                                        + " the topic was made anew. %s")
                                .formatted(
                                        partition,
                                        options.groupId(),
                                        offset,
                                        last,
                                        ClientSettings.startsAtTheEnd(options)
                                                ? "With auto.offset.reset=latest, what is there now is passed over, handled or not"
                                                : "All that is there comes again"));
            }
        });
    }

    /** A group that is new has none either; then there are no claims, and none for the other partitions. */
    private void tellOfMissingOffsets(
            String topic,
            Map<TopicPartition, Long> committed,
            Map<TopicPartition, Long> first,
            Map<TopicPartition, Long> end) {
        boolean hasOthers = committed.keySet().stream().anyMatch(first::containsKey);
        List<Integer> without = first.keySet().stream()
                .filter(partition -> !committed.containsKey(partition))
                .filter(partition -> end.getOrDefault(partition, 0L) > first.getOrDefault(partition, 0L))
                .map(TopicPartition::partition)
                .sorted()
                .toList();
        if (!without.isEmpty() && (hasOthers || hasClaimed)) {
            listener.onWarning(
                    ("group '%s' has no offset for partitions %s of topic '%s', although %s: they have expired (offsets.retention.minutes),"
                                    + " the group has another id than before, or the partitions are new to it. %s")
                            .formatted(
                                    options.groupId(),
                                    without,
                                    topic,
                                    hasOthers
                                            ? "it has for others"
                                            : "consumer '%s' has claims already".formatted(intake.consumer()),
                                    ClientSettings.startsAtTheEnd(options)
                                            ? "With auto.offset.reset=latest, what is there now is passed over, handled or not"
                                            : "All that is there comes again, and what was handled is found by its claim, if that is"
                                                    + " still kept"));
        }
    }

    private static void ifAllowed(Runnable look) {
        try {
            look.run();
        } catch (ApiException e) {
            log.debug("what the topics keep could not be looked at", e);
        }
    }
}
