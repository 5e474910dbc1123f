package io.onceflux.kafka;

import io.onceflux.InvalidSetupException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.jspecify.annotations.Nullable;

/**
 * What to consume, and how. Immutable; start with {@link #topic}, {@link #topics} or {@link #topicsMatching}. Durations have at
 * most 365 days.
 *
 * @param topics the topics to consume; empty if {@code pattern} says which
 * @param pattern the topics to consume are those whose whole name matches; null if they are named. Dead-letter topics never match
 * @param clientProperties the Kafka client's own settings, among them {@code bootstrap.servers}, {@code group.id} and security:
 *     they reach consumer, producer and admin client as they are. Defaults that differ from the client's: {@code
 *     auto.offset.reset} earliest, {@code isolation.level} read_committed, {@code max.poll.records} no more than {@code
 *     maxInFlight} of the consumer that subscribes. {@code enable.auto.commit} and deserializers are not yours to choose
 * @param deadLetterProperties settings of the producer of dead letters, on top of those of the client
 * @param idSource where a message's id is found; {@link IdSource#NONE}, the default, if the payload has it
 * @param messageIdHeader the header that has the id, for {@link IdSource#HEADER}
 * @param deadLetterSuffix what the name of a topic's dead-letter topic ends with; default {@code .DLT}
 * @param createDeadLetterTopics whether to create dead-letter topics that are missing, with as many partitions as the topic;
 *     default false
 * @param commitInterval how often offsets are committed; default 1 s. A crash redelivers what was acknowledged since
 * @param maxDeferredCommits how many messages of a partition may be done while an earlier one is not: a partition that has more
 *     is fetched no further until the earlier one is done, because a crash would redeliver them all. Null, the default, for ten
 *     times the {@code maxInFlight} of the consumer that subscribes
 * @param drainLimit how long a rebalance waits for the messages under way of the partitions that are taken away; less than
 *     the client's {@code max.poll.interval.ms}. Default 10 s, or half of that, if it is less
 * @param minBackoff the pause before the first new subscription after one has ended; it doubles up to {@code maxBackoff};
 *     default 200 ms
 * @param maxBackoff the longest such pause; default 10 s
 * @param startLimit how long the broker may be away at the start, before the start fails; default 1 minute
 * @param confirmLimit how long the broker may take to confirm a dead letter, before it is tried again; default 8 s. What is
 *     stored later is there twice
 */
public record KafkaOptions(
        List<String> topics,
        @Nullable Pattern pattern,
        Map<String, Object> clientProperties,
        Map<String, Object> deadLetterProperties,
        IdSource idSource,
        @Nullable String messageIdHeader,
        String deadLetterSuffix,
        boolean createDeadLetterTopics,
        Duration commitInterval,
        @Nullable Integer maxDeferredCommits,
        Duration drainLimit,
        Duration minBackoff,
        Duration maxBackoff,
        Duration startLimit,
        Duration confirmLimit) {

    /** Where the id of a message is found. */
    public enum IdSource {
        /** Nowhere on the record: the consumer takes it from the payload. */
        NONE,
        /** In a header. */
        HEADER,
        /** The key of the record, as text: only where each message has a key of its own. */
        RECORD_KEY,
        /**
         * The topic's id, the partition and the offset. A redelivery has the same; what a producer sends twice has not, and is two
         * messages. A dead letter that is replayed is a new one too.
         */
        POSITION
    }

    /** Checks every part. */
    public KafkaOptions {
        topics = List.copyOf(Checked.present("topics", topics));
        Checked.that(
                topics.isEmpty() == (pattern != null),
                "name the topics to consume, or give a pattern, and not both: topic(name), topics(names) or topicsMatching(pattern)");
        Checked.filled("deadLetterSuffix", deadLetterSuffix);
        for (String topic : topics) {
            Checked.topic("topic", topic);
            Checked.topic("the dead-letter topic of '" + topic + "'", topic + deadLetterSuffix);
            Checked.that(
                    !topics.contains(topic + deadLetterSuffix),
                    "topics must not have '%s' and its dead-letter topic: its dead letters would be consumed again, and again"
                            .formatted(topic));
        }
        clientProperties = ClientSettings.checked("clientProperties", clientProperties);
        deadLetterProperties = ClientSettings.checkedForDeadLetters(deadLetterProperties);
        Checked.present("idSource", idSource);
        if (idSource == IdSource.HEADER) {
            Checked.filled("messageIdHeader", messageIdHeader);
        }
        Checked.limit("commitInterval", commitInterval);
        Checked.that(
                maxDeferredCommits == null || maxDeferredCommits > 0,
                "maxDeferredCommits must be at least 1, but is " + maxDeferredCommits);
        Checked.limit("drainLimit", drainLimit);
        ClientSettings.requireConsumer(clientProperties, drainLimit);
        Checked.limit("minBackoff", minBackoff);
        Checked.limit("maxBackoff", maxBackoff);
        Checked.limit("startLimit", startLimit);
        Checked.limit("confirmLimit", confirmLimit);
        Checked.that(
                minBackoff.compareTo(maxBackoff) <= 0,
                "minBackoff (%s) must not be longer than maxBackoff (%s)".formatted(minBackoff, maxBackoff));
    }

    /** Starts to describe the consumption of a topic. */
    public static Builder topic(String name) {
        return topics(name);
    }

    /** Starts to describe the consumption of several topics. */
    public static Builder topics(String first, String... others) {
        List<String> names = new ArrayList<>(List.of(others));
        names.add(0, Checked.present("topic", first));
        return new Builder(names, null);
    }

    /** Starts to describe the consumption of all topics whose whole name matches, also of those that are created later. */
    public static Builder topicsMatching(Pattern pattern) {
        return new Builder(List.of(), Checked.present("pattern", pattern));
    }

    String groupId() {
        return String.valueOf(clientProperties.get(ConsumerConfig.GROUP_ID_CONFIG));
    }

    /** The brokers, for messages: never with credentials. */
    String broker() {
        Object servers = clientProperties.get(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG);
        return servers instanceof List<?> list
                ? String.join(",", list.stream().map(String::valueOf).toList())
                : String.valueOf(servers);
    }

    /** The source, for messages and health. */
    String source() {
        return "%s for group '%s' at %s".formatted(what(), groupId(), broker());
    }

    private String what() {
        if (pattern != null) {
            return "topics like '" + pattern.pattern() + "'";
        }
        return (topics.size() == 1 ? "topic '" : "topics '") + String.join("', '", topics) + "'";
    }

    String deadLetterTopicOf(String topic) {
        return topic + deadLetterSuffix;
    }

    /** The pattern without dead-letter topics, or their records would be consumed again, and again. */
    Pattern patternWithoutDeadLetters() {
        Pattern users = Checked.present("pattern", pattern);
        return Pattern.compile(
                "(?!.*" + Pattern.quote(deadLetterSuffix) + "$)(?:" + users.pattern() + ")", users.flags());
    }

    @Override
    public String toString() {
        return "KafkaOptions[" + source() + "]";
    }

    /** Makes {@link KafkaOptions}; what each part means is said there. */
    public static final class Builder {

        private final List<String> topics;
        private final @Nullable Pattern pattern;
        private final Map<String, Object> clientProperties = new HashMap<>();
        private final Map<String, Object> deadLetterProperties = new HashMap<>();
        private IdSource idSource = IdSource.NONE;
        private @Nullable String messageIdHeader;
        private String deadLetterSuffix = ".DLT";
        private boolean createDeadLetterTopics;
        private Duration commitInterval = Duration.ofSeconds(1);
        private @Nullable Integer maxDeferredCommits;
        private @Nullable Duration drainLimit;
        private Duration minBackoff = Duration.ofMillis(200);
        private Duration maxBackoff = Duration.ofSeconds(10);
        private Duration startLimit = Duration.ofMinutes(1);
        private Duration confirmLimit = Duration.ofSeconds(8);

        private Builder(List<String> topics, @Nullable Pattern pattern) {
            this.topics = topics;
            this.pattern = pattern;
        }

        /** Sets {@code bootstrap.servers}: {@code host:port}, or several with commas. */
        public Builder bootstrapServers(String servers) {
            return property(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, servers);
        }

        /** Sets {@code group.id}: the instances of one service share it, and so the partitions. */
        public Builder groupId(String group) {
            return property(ConsumerConfig.GROUP_ID_CONFIG, group);
        }

        /** Sets one of {@link KafkaOptions#clientProperties}, by the name that Kafka gives it. */
        public Builder property(String name, Object value) {
            clientProperties.put(Checked.present("the name of a property", name), Checked.present(name, value));
            return this;
        }

        /** Adds to {@link KafkaOptions#clientProperties}. */
        public Builder properties(Map<String, ?> properties) {
            properties.forEach(this::property);
            return this;
        }

        /** Sets one of {@link KafkaOptions#deadLetterProperties}. */
        public Builder deadLetterProperty(String name, Object value) {
            deadLetterProperties.put(Checked.present("the name of a property", name), Checked.present(name, value));
            return this;
        }

        /** Takes the message's id from a header, which has it as text in UTF-8. Of several of this name the last counts. */
        public Builder messageIdFromHeader(String header) {
            this.messageIdHeader = Checked.present("messageIdHeader", header);
            this.idSource = IdSource.HEADER;
            return this;
        }

        /**
         * Takes the key of the record, text in UTF-8, as the message's id. Only where no two messages have the same key: where the
         * key is a customer's number, that customer's second message would be a duplicate.
         */
        public Builder messageIdFromRecordKey() {
            this.idSource = IdSource.RECORD_KEY;
            return this;
        }

        /**
         * Takes the topic's id, partition and offset as the message's id. That finds redeliveries, and nothing else: a message that
         * its producer sends twice is two messages, and so is a dead letter that is replayed.
         */
        public Builder messageIdFromPosition() {
            this.idSource = IdSource.POSITION;
            return this;
        }

        /** Sets {@link KafkaOptions#deadLetterSuffix}. */
        public Builder deadLetterSuffix(String suffix) {
            this.deadLetterSuffix = suffix;
            return this;
        }

        /** Creates dead-letter topics that are missing when it subscribes. */
        public Builder createDeadLetterTopics() {
            this.createDeadLetterTopics = true;
            return this;
        }

        /** Sets {@link KafkaOptions#commitInterval}. */
        public Builder commitInterval(Duration interval) {
            this.commitInterval = interval;
            return this;
        }

        /** Sets {@link KafkaOptions#maxDeferredCommits}. */
        public Builder maxDeferredCommits(int messages) {
            this.maxDeferredCommits = messages;
            return this;
        }

        /** Sets {@link KafkaOptions#drainLimit}. */
        public Builder drainLimit(Duration limit) {
            this.drainLimit = limit;
            return this;
        }

        /** Sets {@link KafkaOptions#minBackoff} and {@link KafkaOptions#maxBackoff}. */
        public Builder backoff(Duration min, Duration max) {
            this.minBackoff = min;
            this.maxBackoff = max;
            return this;
        }

        /** Sets {@link KafkaOptions#startLimit}. */
        public Builder startLimit(Duration limit) {
            this.startLimit = limit;
            return this;
        }

        /** Sets {@link KafkaOptions#confirmLimit}. */
        public Builder confirmLimit(Duration limit) {
            this.confirmLimit = limit;
            return this;
        }

        /**
         * Makes the options.
         *
         * @throws InvalidSetupException with the name of the part or property that is missing or out of range
         */
        public KafkaOptions build() {
            return new KafkaOptions(
                    topics,
                    pattern,
                    clientProperties,
                    deadLetterProperties,
                    idSource,
                    messageIdHeader,
                    deadLetterSuffix,
                    createDeadLetterTopics,
                    commitInterval,
                    maxDeferredCommits,
                    drainLimit != null ? drainLimit : ClientSettings.usualDrainLimit(clientProperties),
                    minBackoff,
                    maxBackoff,
                    startLimit,
                    confirmLimit);
        }
    }
}
