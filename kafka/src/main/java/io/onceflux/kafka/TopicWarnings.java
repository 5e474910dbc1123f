package io.onceflux.kafka;

import io.onceflux.ConsumerListener;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
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
 * Kafka deletes messages whether they were handled or not: warns where that has happened, and where it may happen soon; and where it keeps
 * them for longer than the consumer keeps its claims. What the user has no right to look at is not warned of. Blocks.
 */
final class TopicWarnings {

    private static final Logger log = LoggerFactory.getLogger(TopicWarnings.class);
    private static final Duration SHORT_RETENTION = Duration.ofDays(1);

    private final KafkaOptions options;
    private final @Nullable Duration claimsKept;
    private final ConsumerListener listener;

    /** @param claimsKept how long the consumer keeps its claims; null if for ever */
    TopicWarnings(KafkaOptions options, @Nullable Duration claimsKept, ConsumerListener listener) {
        this.options = options;
        this.claimsKept = claimsKept;
        this.listener = listener;
    }

    void tell(Admin admin, Collection<TopicDescription> topics) {
        if (topics.isEmpty()) {
            listener.onWarning("no topic at %s is like '%s' yet".formatted(options.broker(), options.pattern()));
            return;
        }
        ifAllowed(() -> tellOfRetention(admin, topics));
        ifAllowed(() -> tellOfWhatIsGone(admin, topics));
    }

    private void tellOfRetention(Admin admin, Collection<TopicDescription> topics) {
        Set<String> names = topics.stream().map(TopicDescription::name).collect(Collectors.toSet());
        List<ConfigResource> asked = names.stream()
                .map(name -> new ConfigResource(ConfigResource.Type.TOPIC, name))
                .toList();
        Topology.get(admin.describeConfigs(asked).all()).forEach((topic, config) -> tellOf(topic.name(), config));
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
                    ("topic '%s' keeps messages %s, but claims are kept for %s: where the group is set back to what is older, that is"
                                    + " applied again")
                            .formatted(
                                    topic,
                                    forEver ? "for ever" : "for up to " + Duration.ofMillis(millis),
                                    claimsKept));
        }
    }

    private static String value(Config config, String name, String otherwise) {
        String value = config.get(name) == null ? null : config.get(name).value();
        return value == null ? otherwise : value;
    }

    private void tellOfWhatIsGone(Admin admin, Collection<TopicDescription> topics) {
        Set<TopicPartition> partitions = new HashSet<>();
        topics.forEach(topic -> topic.partitions()
                .forEach(partition -> partitions.add(new TopicPartition(topic.name(), partition.partition()))));
        Map<TopicPartition, Long> committed = Topology.committed(admin, options.groupId());
        committed.keySet().retainAll(partitions);
        Map<TopicPartition, OffsetSpec> earliest = new HashMap<>();
        committed.keySet().forEach(partition -> earliest.put(partition, OffsetSpec.earliest()));
        Map<TopicPartition, ListOffsetsResultInfo> first =
                Topology.get(admin.listOffsets(earliest).all());
        first.forEach((partition, begin) -> {
            Long offset = committed.get(partition);
            if (offset != null && offset < begin.offset()) {
                listener.onWarning(
                        ("of %s, offsets %d to %d were deleted by the topic's retention before group '%s' had handled them:"
                                        + " their messages are lost")
                                .formatted(partition, offset, begin.offset() - 1, options.groupId()));
            }
        });
    }

    private static void ifAllowed(Runnable look) {
        try {
            look.run();
        } catch (ApiException e) {
            log.debug("what the topics keep could not be looked at", e);
        }
    }
}
