package io.onceflux.chaos;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.onceflux.chaos.consumer.ChaosConsumer;
import io.onceflux.chaos.consumer.Copy;
import io.onceflux.services.KafkaService;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A topic of Kafka, its group, and its dead letters. Offsets are not committed through a proxy: a broker tells clients where it is. */
final class BrokerTopic implements Place, AutoCloseable {

    private static final String NAME = "chaos";
    private static final String DEAD_LETTERS = NAME + ".DLT";
    private static final int PARTITIONS = 6;
    private static final int LIMIT_SECONDS = 5;

    private final KafkaService kafka;
    private final Admin admin;

    BrokerTopic(KafkaService kafka) {
        this.kafka = kafka;
        this.admin = Admin.create(Map.of(
                "bootstrap.servers", kafka.bootstrap(), "request.timeout.ms", 2_000, "default.api.timeout.ms", 4_000));
    }

    void create() throws IOException, TimeoutException {
        answer(admin.createTopics(List.of(
                        new NewTopic(NAME, PARTITIONS, (short) 1), new NewTopic(DEAD_LETTERS, PARTITIONS, (short) 1)))
                .all());
    }

    @Override
    public String address(int consumer) {
        return ChaosConsumer.KAFKA + kafka.bootstrap();
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public long consumers() throws IOException, TimeoutException {
        List<Integer> shares = answer(
                        admin.describeConsumerGroups(List.of(NAME)).all())
                .values()
                .stream()
                .flatMap(group -> group.members().stream())
                .map(member -> member.assignment().topicPartitions().size())
                .toList();
        boolean shared = shares.stream().mapToInt(Integer::intValue).sum() == PARTITIONS && !shares.contains(0);
        return shared ? shares.size() : 0;
    }

    @Override
    public long backlog() throws IOException, TimeoutException {
        Map<TopicPartition, OffsetAndMetadata> done =
                answer(admin.listConsumerGroupOffsets(NAME).partitionsToOffsetAndMetadata());
        return ends(NAME).entrySet().stream()
                .mapToLong(end -> end.getValue()
                        - (done.get(end.getKey()) == null
                                ? 0
                                : done.get(end.getKey()).offset()))
                .sum();
    }

    private Map<TopicPartition, Long> ends(String topic) throws IOException, TimeoutException {
        Map<TopicPartition, OffsetSpec> asked = new HashMap<>();
        IntStream.range(0, PARTITIONS)
                .forEach(partition -> asked.put(new TopicPartition(topic, partition), OffsetSpec.latest()));
        Map<TopicPartition, Long> ends = new HashMap<>();
        answer(admin.listOffsets(asked).all()).forEach((partition, end) -> ends.put(partition, end.offset()));
        return ends;
    }

    @Override
    public List<Letter> takeDeadLetters() throws IOException, TimeoutException {
        Map<TopicPartition, Long> ends = ends(DEAD_LETTERS);
        List<Letter> letters = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> reader = new KafkaConsumer<>(
                Map.of("bootstrap.servers", kafka.bootstrap(), "auto.offset.reset", "earliest"),
                new ByteArrayDeserializer(),
                new ByteArrayDeserializer())) {
            reader.assign(ends.keySet());
            while (ends.entrySet().stream().anyMatch(end -> reader.position(end.getKey()) < end.getValue())) {
                reader.poll(Duration.ofMillis(200)).forEach(record -> letters.add(letter(record)));
            }
        }
        return letters;
    }

    private static Letter letter(ConsumerRecord<byte[], byte[]> record) {
        return Letter.inQueue(
                new Copy(header(record, ChaosConsumer.ID), Integer.parseInt(header(record, Copy.HEADER))),
                header(record, "x-onceflux-reason"),
                record.value());
    }

    private static String header(ConsumerRecord<byte[], byte[]> record, String name) {
        Header header = record.headers().lastHeader(name);
        return header == null ? "" : new String(header.value(), UTF_8);
    }

    @Override
    public Outlet outlet() {
        return new TopicOutlet(kafka.bootstrap(), NAME);
    }

    private static <T> T answer(KafkaFuture<T> future) throws IOException, TimeoutException {
        try {
            return future.get(LIMIT_SECONDS, TimeUnit.SECONDS);
        } catch (ExecutionException e) {
            throw new IOException("the broker did not answer", e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException(e);
        }
    }

    @Override
    public void close() {
        admin.close(Duration.ofSeconds(1));
    }
}
