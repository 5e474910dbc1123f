package io.onceflux.kafka;

import io.onceflux.Intake;
import io.onceflux.InvalidSetupException;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.jspecify.annotations.Nullable;

/** The settings of the Kafka clients: the user's, what follows from the options, and what may not be changed. */
final class ClientSettings {

    private static final int LARGEST_POLL = 500;
    private static final int LARGEST_RECORD = 64 * 1024 * 1024;
    private static final long USUAL_POLL_INTERVAL = 300_000;
    /** More than that, brokers refuse if nobody has told them otherwise. */
    private static final Duration LONGEST_TRANSACTION = Duration.ofMinutes(15);

    private static final Duration LONGEST_DRAIN = Duration.ofSeconds(10);
    private static final Pattern SECRET = Pattern.compile("password|secret|jaas|token|credential|keystore\\.key");

    /** Within a JAAS configuration, where not everything is secret. */
    private static final Pattern SECRET_OPTION =
            Pattern.compile("(?i)\\w*(?:password|secret|token)\\w*\\s*=\\s*[\"']?([^\"';\\s]+)");

    private ClientSettings() {}

    static Map<String, Object> checked(String property, Map<String, Object> settings) {
        Checked.present(property, settings).forEach((name, value) -> {
            Checked.present("the name of a property in " + property, name);
            Checked.present(name, value);
        });
        return Map.copyOf(settings);
    }

    /** Half of what the group waits for a member that does not poll, but not more than this. */
    static Duration usualDrainLimit(Map<String, Object> settings) {
        Duration half = Duration.ofMillis(
                number(settings, ConsumerConfig.MAX_POLL_INTERVAL_MS_CONFIG, USUAL_POLL_INTERVAL) / 2);
        return half.compareTo(LONGEST_DRAIN) < 0 ? half : LONGEST_DRAIN;
    }

    static void requireConsumer(Map<String, Object> settings, Duration drainLimit) {
        requireText(settings, ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, "the brokers to begin with, as host:port");
        requireText(
                settings,
                ConsumerConfig.GROUP_ID_CONFIG,
                "the instances of one service share it, and it must stay the same over releases");
        Checked.that(
                !isTrue(settings.get(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG)),
                "enable.auto.commit must not be true: the client would commit offsets of messages that are still being handled."
                        + " Leave it out: offsets are committed at the commitInterval, after the messages' effects");
        for (String name :
                List.of(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG)) {
            Checked.that(
                    isOrMissing(settings.get(name), ByteArrayDeserializer.class.getName()),
                    name + " must not be set: a record that it cannot decode would end the stream."
                            + " Decode with Delivery.decoding(...), which makes it a dead letter");
        }
        long pollInterval = number(settings, ConsumerConfig.MAX_POLL_INTERVAL_MS_CONFIG, USUAL_POLL_INTERVAL);
        Checked.that(
                drainLimit.toMillis() < pollInterval,
                "drainLimit (%d ms) must be less than max.poll.interval.ms (%d ms), after which the group goes on without waiting"
                        .formatted(drainLimit.toMillis(), pollInterval));
    }

    static Map<String, Object> checkedForDeadLetters(Map<String, Object> settings) {
        return checkedProducer(
                "dead letters",
                "the original is acknowledged once its dead letter is stored",
                checked("deadLetterProperties", settings));
    }

    static Map<String, Object> checkedForOutbox(Map<String, Object> settings) {
        Map<String, Object> all = checked("producerProperties", settings);
        requireText(all, ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, "the brokers to begin with, as host:port");
        for (String name :
                List.of(ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG)) {
            Checked.that(
                    isOrMissing(all.get(name), ByteArraySerializer.class.getName()),
                    name + " must not be set: an entry's key is text, and its payload bytes");
        }
        return checkedProducer("an outbox", "an entry counts as sent once it is stored", all);
    }

    private static Map<String, Object> checkedProducer(String ofWhat, String why, Map<String, Object> all) {
        Object acks = all.get(ProducerConfig.ACKS_CONFIG);
        Checked.that(
                acks == null || Set.of("all", "-1").contains(String.valueOf(acks)),
                "acks of the producer of %s must be all, but is %s: %s".formatted(ofWhat, acks, why));
        Checked.that(
                !"false".equalsIgnoreCase(String.valueOf(all.get(ProducerConfig.ENABLE_IDEMPOTENCE_CONFIG))),
                "enable.idempotence of the producer of %s must not be false: a send that is tried again would be there twice"
                        .formatted(ofWhat));
        Checked.that(
                !all.containsKey(ProducerConfig.TRANSACTIONAL_ID_CONFIG),
                "transactional.id of the producer of %s must not be set: it uses no transactions".formatted(ofWhat));
        return all;
    }

    /** How many of the deliveries that a consumer takes are one lane's, if all have the same. */
    static int shareOfALane(Intake intake) {
        return Math.max(1, intake.maxInFlight() / intake.lanes());
    }

    static Map<String, Object> consumer(KafkaOptions options, String consumer, int maxInFlight) {
        Map<String, Object> settings = new HashMap<>();
        settings.put(ConsumerConfig.CLIENT_ID_CONFIG, clientId(consumer));
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        settings.put(ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed");
        settings.put(ConsumerConfig.MAX_POLL_RECORDS_CONFIG, Math.min(LARGEST_POLL, maxInFlight));
        settings.put(ConsumerConfig.ALLOW_AUTO_CREATE_TOPICS_CONFIG, false);
        settings.putAll(options.clientProperties());
        settings.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        settings.put(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
        settings.put(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
        return settings;
    }

    /** Without a group, to look through a topic. */
    static Map<String, Object> reader(KafkaOptions options, String name) {
        Map<String, Object> settings = consumer(options, name, LARGEST_POLL);
        for (String ofGroups : List.of(
                ConsumerConfig.GROUP_ID_CONFIG,
                ConsumerConfig.GROUP_INSTANCE_ID_CONFIG,
                ConsumerConfig.INTERCEPTOR_CLASSES_CONFIG,
                "group.protocol",
                "group.remote.assignor")) {
            settings.remove(ofGroups);
        }
        settings.put(ConsumerConfig.CLIENT_ID_CONFIG, clientId(name));
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        return settings;
    }

    static Map<String, Object> admin(KafkaOptions options) {
        Map<String, Object> settings = without(options.clientProperties(), AdminClientConfig.configNames());
        settings.put(AdminClientConfig.CLIENT_ID_CONFIG, clientId("admin"));
        return settings;
    }

    /** Compressed, so that what came in a compressed batch is not too large on its own; large, because the topic decides. */
    static Map<String, Object> deadLetterProducer(KafkaOptions options) {
        int confirmLimit = Math.toIntExact(Math.min(options.confirmLimit().toMillis(), Integer.MAX_VALUE));
        Map<String, Object> settings = without(options.clientProperties(), ProducerConfig.configNames());
        settings.remove(ProducerConfig.INTERCEPTOR_CLASSES_CONFIG); // The consumer's.
        settings.put(ProducerConfig.CLIENT_ID_CONFIG, clientId("dead-letters"));
        settings.put(ProducerConfig.COMPRESSION_TYPE_CONFIG, "gzip");
        settings.put(ProducerConfig.MAX_REQUEST_SIZE_CONFIG, LARGEST_RECORD);
        settings.put(ProducerConfig.BUFFER_MEMORY_CONFIG, (long) LARGEST_RECORD + LARGEST_RECORD / 2);
        settings.putAll(options.deadLetterProperties());
        settings.put(ProducerConfig.ACKS_CONFIG, "all");
        settings.put(ProducerConfig.ENABLE_IDEMPOTENCE_CONFIG, true);
        settings.put(ProducerConfig.LINGER_MS_CONFIG, 0);
        settings.put(ProducerConfig.MAX_BLOCK_MS_CONFIG, confirmLimit);
        settings.put(ProducerConfig.REQUEST_TIMEOUT_MS_CONFIG, confirmLimit);
        settings.put(ProducerConfig.DELIVERY_TIMEOUT_MS_CONFIG, confirmLimit);
        settings.put(ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class);
        settings.put(ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class);
        return settings;
    }

    /** Of all replays of a topic of dead letters, whoever they are. */
    static String replayId(String deadLetterTopic) {
        return "onceflux-replay-" + deadLetterTopic;
    }

    /** Who reads with read_committed waits behind a transaction that nobody ends for so long as it may last. */
    static Map<String, Object> replayProducer(KafkaOptions options, String transactionalId) {
        Map<String, Object> settings = deadLetterProducer(options);
        settings.put(ProducerConfig.CLIENT_ID_CONFIG, clientId("replay"));
        settings.put(ProducerConfig.TRANSACTIONAL_ID_CONFIG, transactionalId);
        settings.put(
                ProducerConfig.TRANSACTION_TIMEOUT_CONFIG,
                Math.toIntExact(Math.min(
                        Math.max(10_000, 3 * options.confirmLimit().toMillis()), LONGEST_TRANSACTION.toMillis())));
        return settings;
    }

    /** Names that only the consumer knows stay away, or the other clients would warn of them; what nobody knows may be a plug-in's. */
    private static Map<String, Object> without(Map<String, Object> consumers, Set<String> known) {
        Map<String, Object> settings = new HashMap<>(consumers);
        settings.keySet().removeIf(name -> ConsumerConfig.configNames().contains(name) && !known.contains(name));
        return settings;
    }

    private static String clientId(String what) {
        return "onceflux-" + what.replaceAll("[^a-zA-Z0-9._-]", "_");
    }

    /** Whether a partition without an offset begins behind messages that are there: at the end, or, with the client's 4 line, at a time. */
    static boolean startsAtTheEnd(KafkaOptions options) {
        Object reset = options.clientProperties().get(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG);
        return reset != null
                && !List.of("earliest", "none").contains(String.valueOf(reset).toLowerCase(Locale.ROOT));
    }

    /** Whether a text repeats a secret of the settings. */
    static boolean tellsASecret(KafkaOptions options, @Nullable String text) {
        return text != null
                && (secretIn(options.clientProperties(), text) || secretIn(options.deadLetterProperties(), text));
    }

    private static boolean secretIn(Map<String, Object> settings, String text) {
        return settings.entrySet().stream()
                .filter(one ->
                        SECRET.matcher(one.getKey().toLowerCase(Locale.ROOT)).find())
                .map(one -> one.getValue() instanceof org.apache.kafka.common.config.types.Password password
                        ? password.value()
                        : String.valueOf(one.getValue()))
                .anyMatch(secret -> text.contains(secret)
                        || SECRET_OPTION.matcher(secret).results().anyMatch(option -> text.contains(option.group(1))));
    }

    private static void requireText(Map<String, Object> settings, String name, String meaning) {
        Object value = settings.get(name);
        boolean filled = value instanceof List<?> list
                ? !list.isEmpty()
                : value != null && !String.valueOf(value).isBlank();
        Checked.that(filled, name + " is missing: " + meaning);
    }

    private static boolean isTrue(@Nullable Object value) {
        return value != null && "true".equalsIgnoreCase(String.valueOf(value).strip());
    }

    private static boolean isOrMissing(@Nullable Object value, String className) {
        return value == null
                || className.equals(value instanceof Class<?> type ? type.getName() : String.valueOf(value));
    }

    static long number(Map<String, Object> settings, String name, long otherwise) {
        Object value = settings.get(name);
        if (value == null) {
            return otherwise;
        }
        try {
            return Long.parseLong(String.valueOf(value).strip());
        } catch (NumberFormatException e) {
            throw new InvalidSetupException(name + " must be a number, but is '" + value + "'");
        }
    }
}
