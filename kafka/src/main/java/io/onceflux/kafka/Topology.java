package io.onceflux.kafka;

import io.onceflux.ConsumerListener;
import io.onceflux.Intake;
import io.onceflux.InvalidSetupException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BiConsumer;
import java.util.function.Predicate;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.DescribeTopicsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.InvalidReplicationFactorException;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.common.errors.TopicAuthorizationException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Makes sure that the topics and the places for dead letters are there, before anything is consumed. Blocks. */
final class Topology {

    private static final Logger log = LoggerFactory.getLogger(Topology.class);
    private static final Duration LIMIT = Duration.ofSeconds(10);

    private final KafkaOptions options;

    /** The topics that have been looked at. */
    private final Set<String> ensured = ConcurrentHashMap.newKeySet();

    Topology(KafkaOptions options) {
        this.options = options;
    }

    /**
     * Looks.
     *
     * @param intake of the consumer: one that keeps dead letters itself needs no topics for them
     * @param warnings of what is likely not wanted; null if that has been told
     * @param more what else has to be fit, given the names of the topics
     */
    void ensure(Intake intake, @Nullable TopicWarnings warnings, BiConsumer<Admin, Set<String>> more) {
        try (Admin admin = admin(options)) {
            Set<String> topics = topics(admin);
            Map<String, TopicDescription> found = describe(admin, topics, name -> {
                throw new InvalidSetupException(
                        "Topic '%s' does not exist at %s. Create it.".formatted(name, options.broker()));
            });
            for (TopicDescription topic : found.values()) {
                Checked.that(
                        isAllowed(topic, AclOperation.READ),
                        "The user has no right to read topics [%s] at %s: grant READ on it."
                                .formatted(topic.name(), options.broker()));
                if (intake.keepsDeadLetters()) {
                    continue;
                }
                if (options.pattern() != null && warnings == null) { // One that came later holds up none of the others.
                    warnOfDeadLetterTopic(admin, topic, intake.listener());
                } else {
                    ensureDeadLetterTopic(admin, topic);
                }
            }
            more.accept(admin, found.keySet());
            if (warnings != null) {
                warnings.tell(admin, found.values());
            }
            ensured.addAll(found.keySet());
        }
    }

    /** Whether a topic was not there yet when it was looked, as those that match a pattern may. */
    boolean isNew(String topic) {
        return !ensured.contains(topic);
    }

    /** Looks at topics that were added since. What is not as it should be is a warning, because the others are consumed. */
    void ensureAdded(Intake intake, Set<String> topics) {
        try (Admin admin = admin(options)) {
            Map<String, TopicDescription> found =
                    describe(admin, topics, name -> log.debug("topic {} is gone already", name));
            if (!intake.keepsDeadLetters()) {
                found.values().forEach(topic -> warnOfDeadLetterTopic(admin, topic, intake.listener()));
            }
            if (!found.isEmpty()) {
                TopicWarnings.of(options, intake).tell(admin, found.values());
            }
            ensured.addAll(topics);
        }
    }

    private void warnOfDeadLetterTopic(Admin admin, TopicDescription topic, ConsumerListener listener) {
        try {
            ensureDeadLetterTopic(admin, topic);
        } catch (InvalidSetupException e) {
            listener.onWarning(String.valueOf(e.getMessage()));
        } catch (ApiException e) {
            listener.onWarning("topic '%s' for dead letters cannot be looked after: %s"
                    .formatted(options.deadLetterTopicOf(topic.name()), Refusals.wordsOf(e)));
        }
    }

    /** That the user may write to these topics. One that is not there is for the broker to create or to refuse. */
    void requireWrite(Set<String> topics) {
        try (Admin admin = admin(options)) {
            describe(admin, topics, missing -> {})
                    .values()
                    .forEach(topic -> Checked.that(
                            isAllowed(topic, AclOperation.WRITE),
                            "The user has no right to write to topic '%s' at %s, which a replay does: grant WRITE on it."
                                    .formatted(topic.name(), options.broker())));
        }
    }

    /** The offsets that the group has, by partition. */
    Map<TopicPartition, Long> committed() {
        try (Admin admin = admin(options)) {
            return committed(admin, options.groupId());
        }
    }

    static Map<TopicPartition, Long> committed(Admin admin, String groupId) {
        Map<TopicPartition, Long> committed = new HashMap<>();
        get(admin.listConsumerGroupOffsets(groupId).partitionsToOffsetAndMetadata())
                .forEach((partition, offset) -> {
                    if (offset != null) {
                        committed.put(partition, offset.offset());
                    }
                });
        return committed;
    }

    private Set<String> topics(Admin admin) {
        if (options.pattern() == null) {
            return new TreeSet<>(options.topics());
        }
        Predicate<String> wanted = options.patternWithoutDeadLetters().asMatchPredicate();
        Set<String> names = new TreeSet<>(get(admin.listTopics().names()));
        names.removeIf(wanted.negate());
        return names;
    }

    private void ensureDeadLetterTopic(Admin admin, TopicDescription topic) {
        String name = options.deadLetterTopicOf(topic.name());
        Map<String, TopicDescription> found = describe(admin, Set.of(name), missing -> {});
        TopicDescription there = found.get(name);
        if (there != null) {
            Checked.that(
                    isAllowed(there, AclOperation.WRITE),
                    "The user has no right to write to topic '%s' at %s, where dead letters go: grant WRITE on it."
                            .formatted(name, options.broker()));
        } else if (options.createDeadLetterTopics()) {
            create(admin, name, topic);
        } else if (!createsTopicsItself(admin)) {
            throw new InvalidSetupException(
                    ("Topic '%s' does not exist at %s, and the broker does not create topics by itself. Dead letters go there:"
                                    + " create it, or use createDeadLetterTopics().")
                            .formatted(name, options.broker()));
        }
    }

    /** Where the broker does not tell, it is assumed. */
    private static boolean isAllowed(TopicDescription topic, AclOperation operation) {
        Set<AclOperation> rights = topic.authorizedOperations();
        return rights == null || rights.contains(operation);
    }

    /** As many partitions and replicas as the topic has, whatever the broker's defaults; and a letter never replaces another. */
    private void create(Admin admin, String name, TopicDescription topic) {
        int replicas = topic.partitions().get(0).replicas().size();
        NewTopic made = new NewTopic(name, topic.partitions().size(), (short) replicas)
                .configs(Map.of(TopicConfig.CLEANUP_POLICY_CONFIG, TopicConfig.CLEANUP_POLICY_DELETE));
        try {
            get(admin.createTopics(List.of(made)).all());
        } catch (TopicExistsException e) { // Another instance was faster.
            log.debug("{} has been created meanwhile", name, e);
        } catch (AuthorizationException e) {
            throw new InvalidSetupException(
                    "The user has no right to create topic '%s' at %s, where dead letters go: create it, or grant CREATE."
                            .formatted(name, options.broker()),
                    e);
        } catch (InvalidReplicationFactorException | PolicyViolationException e) {
            throw new InvalidSetupException(
                    "Topic '%s' for dead letters cannot be created at %s with %d replicas, as many as '%s' has: create it. Kafka said: %s"
                            .formatted(name, options.broker(), replicas, topic.name(), Refusals.wordsOf(e)),
                    e);
        }
    }

    private static boolean createsTopicsItself(Admin admin) {
        try {
            Collection<Node> nodes = get(admin.describeCluster().nodes());
            ConfigResource broker = new ConfigResource(
                    ConfigResource.Type.BROKER, nodes.iterator().next().idString());
            return get(admin.describeConfigs(List.of(broker)).all()).values().stream()
                    .map(config -> config.get("auto.create.topics.enable"))
                    .anyMatch(entry -> entry != null && "true".equals(entry.value()));
        } catch (AuthorizationException e) { // Not for this user to know; then it had better be there.
            log.debug("whether the broker creates topics is not known", e);
            return false;
        }
    }

    private Map<String, TopicDescription> describe(
            Admin admin, Set<String> names, java.util.function.Consumer<String> missing) {
        Map<String, TopicDescription> found = new HashMap<>();
        DescribeTopicsOptions withRights = new DescribeTopicsOptions().includeAuthorizedOperations(true);
        admin.describeTopics(names, withRights).topicNameValues().forEach((name, future) -> {
            try {
                found.put(name, get(future));
            } catch (UnknownTopicOrPartitionException e) {
                missing.accept(name);
            } catch (
                    TopicAuthorizationException
                            e) { // Also the answer where there is no such topic, so that nobody can guess.
                throw new InvalidSetupException(
                        "Topic '%s' does not exist at %s, or the user has no right to it: create it, or grant DESCRIBE and READ, or for dead letters WRITE."
                                .formatted(name, options.broker()),
                        e);
            }
        });
        return found;
    }

    /** The ids of topics. Blocks. */
    static Map<String, Uuid> idsOf(KafkaOptions options, Set<String> topics) {
        if (topics.isEmpty()) {
            return Map.of();
        }
        try (Admin admin = admin(options)) {
            return idsOf(admin, topics);
        }
    }

    static Map<String, Uuid> idsOf(Admin admin, Set<String> topics) {
        Map<String, Uuid> ids = new HashMap<>();
        get(admin.describeTopics(topics).allTopicNames()).forEach((name, topic) -> ids.put(name, topic.topicId()));
        return ids;
    }

    static Admin admin(KafkaOptions options) {
        return Refusals.making(options, () -> {
            Map<String, Object> settings = ClientSettings.admin(options);
            settings.put(AdminClientConfig.REQUEST_TIMEOUT_MS_CONFIG, (int) LIMIT.toMillis() / 2);
            settings.put(AdminClientConfig.DEFAULT_API_TIMEOUT_MS_CONFIG, (int) LIMIT.toMillis());
            return Admin.create(settings);
        });
    }

    /** What the broker answers; its refusals are thrown as they are. */
    static <T> T get(KafkaFuture<T> answer) {
        try {
            return answer.get(LIMIT.toMillis() * 2, TimeUnit.MILLISECONDS);
        } catch (ExecutionException e) {
            if (e.getCause() instanceof RuntimeException refusal) {
                throw refusal;
            }
            throw new UncheckedIOException(new IOException("the broker's answer failed", e));
        } catch (TimeoutException e) {
            throw new UncheckedIOException(new IOException("the broker did not answer in time", e));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new UncheckedIOException(new IOException("interrupted while waiting for the broker's answer", e));
        }
    }
}
