package io.onceflux.kafka;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.services.ConsumedTopic;
import io.onceflux.services.KafkaService;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.awaitility.Awaitility;
import org.jspecify.annotations.Nullable;

/** A topic and group of its own on a real broker: what a producer and an operator would do with them. */
final class Broker implements AutoCloseable {

    static final String ID = "message-id";
    private static final Duration LIMIT = Duration.ofSeconds(60);

    static {
        Awaitility.setDefaultTimeout(LIMIT); // To join a group takes seconds on a busy machine.
    }

    private final KafkaService service;
    private final String topic = "orders-" + UUID.randomUUID();
    private final String group = "loyalty-" + UUID.randomUUID();
    private final Map<String, Object> clients;
    private final ConsumedTopic consumed;
    private final KafkaProducer<byte[], byte[]> producer;

    private Broker(KafkaService service) {
        this.service = service;
        this.clients = Map.of("bootstrap.servers", service.bootstrap(), "reconnect.backoff.max.ms", "200");
        this.consumed = ConsumedTopic.at(service.bootstrap(), topic, group, Duration.ofSeconds(30));
        Map<String, Object> producing = new HashMap<>(clients);
        producing.put("acks", "all");
        producing.put("max.request.size", 32 * 1024 * 1024);
        this.producer = new KafkaProducer<>(producing, new ByteArraySerializer(), new ByteArraySerializer());
    }

    /** On the broker that all tests share. */
    static Broker create() {
        return on(KafkaService.shared());
    }

    static Broker on(KafkaService service) {
        return new Broker(service);
    }

    String bootstrap() {
        return service.bootstrap();
    }

    String topic() {
        return topic;
    }

    String group() {
        return group;
    }

    String deadLetterTopic() {
        return consumed.deadLetters();
    }

    Admin admin() {
        return consumed.admin();
    }

    /** Options for this topic, with short pauses and a group that notices soon who is gone. */
    KafkaOptions.Builder options() {
        return options(Protocol.EAGER);
    }

    KafkaOptions.Builder options(Protocol protocol) {
        return quick(KafkaOptions.topic(topic), protocol).messageIdFromHeader(ID);
    }

    KafkaOptions.Builder quick(KafkaOptions.Builder options, Protocol protocol) {
        return options.bootstrapServers(service.bootstrap())
                .groupId(group)
                .properties(protocol.settings())
                .property("reconnect.backoff.max.ms", 200)
                .property("fetch.max.wait.ms", 100)
                .commitInterval(Duration.ofMillis(100))
                .backoff(Duration.ofMillis(50), Duration.ofMillis(500));
    }

    void create(int partitions) {
        create(partitions, Map.of());
    }

    void create(int partitions, Map<String, String> settings) {
        createTopic(topic, partitions, settings);
        createTopic(deadLetterTopic(), partitions, Map.of());
    }

    void createTopic(String name, int partitions, Map<String, String> settings) {
        call(() -> admin().createTopics(List.of(new NewTopic(name, partitions, (short) 1).configs(settings)))
                .all()
                .get(30, TimeUnit.SECONDS));
        await().ignoreExceptions()
                .until(() -> admin().describeTopics(List.of(name))
                                .allTopicNames()
                                .get(5, TimeUnit.SECONDS)
                                .size()
                        == 1);
    }

    void delete(String name) {
        call(() -> admin().deleteTopics(List.of(name)).all().get(30, TimeUnit.SECONDS));
    }

    void configure(String name, String setting, String value) {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, name);
        call(() -> admin().incrementalAlterConfigs(Map.of(
                        resource,
                        List.of(new org.apache.kafka.clients.admin.AlterConfigOp(
                                new org.apache.kafka.clients.admin.ConfigEntry(setting, value),
                                org.apache.kafka.clients.admin.AlterConfigOp.OpType.SET))))
                .all()
                .get(30, TimeUnit.SECONDS));
    }

    static List<String> ids(String prefix, int count) {
        return IntStream.range(0, count).mapToObj(i -> prefix + i).toList();
    }

    /** Publishes messages whose id, key and value are the given texts, confirmed. */
    void publish(List<String> ids) {
        publishAll(ids.stream().map(id -> record(id, id, id)).toList());
    }

    void publish(String... ids) {
        publish(List.of(ids));
    }

    ProducerRecord<byte[], byte[]> record(String id, @Nullable String key, @Nullable String value) {
        ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(topic, bytes(key), bytes(value));
        record.headers().add(ID, bytes(id));
        return record;
    }

    /** To a partition; the value is the id. */
    ProducerRecord<byte[], byte[]> record(int partition, String id, String key) {
        return new ProducerRecord<>(
                topic, partition, bytes(key), bytes(id), record(id, key, id).headers());
    }

    static byte @Nullable [] bytes(@Nullable String text) {
        return text == null ? null : text.getBytes(UTF_8);
    }

    void publish(ProducerRecord<byte[], byte[]> record) {
        publishAll(List.of(record));
    }

    void publishAll(List<ProducerRecord<byte[], byte[]>> records) {
        List<Future<RecordMetadata>> sent = records.stream().map(producer::send).toList();
        sent.forEach(one -> call(() -> one.get(LIMIT.toSeconds(), TimeUnit.SECONDS)));
    }

    /** A producer with transactions. */
    KafkaProducer<byte[], byte[]> transactional() {
        Map<String, Object> producing = new HashMap<>(clients);
        producing.put("transactional.id", UUID.randomUUID().toString());
        KafkaProducer<byte[], byte[]> made =
                new KafkaProducer<>(producing, new ByteArraySerializer(), new ByteArraySerializer());
        made.initTransactions();
        return made;
    }

    /** Everything in the topic of dead letters. */
    List<ConsumerRecord<byte[], byte[]>> deadLetters() {
        return read(deadLetterTopic());
    }

    List<ConsumerRecord<byte[], byte[]>> read(String name) {
        Map<String, Object> reading = new HashMap<>(clients);
        reading.put("auto.offset.reset", "earliest");
        reading.put("enable.auto.commit", false);
        List<ConsumerRecord<byte[], byte[]>> all = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(reading, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> partitions = consumer.partitionsFor(name).stream()
                    .map(one -> new TopicPartition(one.topic(), one.partition()))
                    .toList();
            consumer.assign(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            while (ends.entrySet().stream().anyMatch(end -> consumer.position(end.getKey()) < end.getValue())) {
                consumer.poll(Duration.ofMillis(100)).forEach(all::add);
            }
        }
        return all;
    }

    static @Nullable String header(ConsumerRecord<byte[], byte[]> letter, String name) {
        Header header = letter.headers().lastHeader(DeadLetterRecord.PREFIX + name);
        return header == null ? null : new String(header.value(), UTF_8);
    }

    void awaitDeadLetters(int count) {
        await().until(() -> deadLetters().size() == count);
    }

    /** How many offsets of the topic the group has not passed. */
    long lag() {
        return call(consumed::lag);
    }

    Map<TopicPartition, OffsetAndMetadata> committed() {
        return call(consumed::committed);
    }

    Map<TopicPartition, Long> ends() {
        return call(consumed::ends);
    }

    /** Waits until the group has no members, and sets its offset in all partitions. */
    void resetTo(long offset) {
        await().until(() -> members().isEmpty());
        call(() -> {
            consumed.resetTo(offset);
            return offset;
        });
    }

    void awaitNoBacklog() {
        await().ignoreExceptions()
                .untilAsserted(() -> assertThat(lag()).as("lag").isZero());
    }

    /** The partitions that each member of the group has. */
    List<Set<TopicPartition>> members() {
        return call(consumed::members);
    }

    /** Waits until so many members share all partitions. */
    void awaitMembers(int count) {
        await().ignoreExceptions().until(() -> consumed.sharing() == count);
    }

    private static <R> R call(Callable<R> work) {
        try {
            return work.call();
        } catch (RuntimeException e) {
            throw e;
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public void close() {
        producer.close(Duration.ofSeconds(1));
        consumed.close();
    }
}
