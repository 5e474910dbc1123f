package io.onceflux.chaos;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.onceflux.chaos.consumer.ChaosConsumer;
import io.onceflux.chaos.consumer.Copy;
import io.onceflux.services.ConsumedTopic;
import io.onceflux.services.KafkaService;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A topic of Kafka, its group, and its dead letters. Offsets are not committed through a proxy: a broker tells clients where it is. */
final class BrokerTopic implements Place, AutoCloseable {

    private static final String NAME = "chaos";
    /** As many as the lanes of all consumers: with an offset fence a partition is one. */
    private static final int PARTITIONS = 18;

    private static final Duration LIMIT = Duration.ofSeconds(4);

    private final KafkaService kafka;
    private final ConsumedTopic consumed;

    BrokerTopic(KafkaService kafka) {
        this.kafka = kafka;
        this.consumed = ConsumedTopic.at(kafka.bootstrap(), NAME, NAME, LIMIT);
    }

    void create() throws IOException {
        consumed.create(PARTITIONS);
        consumed.createDeadLetters(PARTITIONS);
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
    public long consumers() throws IOException {
        return consumed.sharing();
    }

    @Override
    public long backlog() throws IOException {
        return consumed.lag();
    }

    @Override
    public List<Letter> takeDeadLetters() throws IOException {
        Map<TopicPartition, Long> ends = consumed.ends(consumed.deadLetters());
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
    public Outlet outlet(boolean repeats) {
        return new TopicOutlet(kafka.bootstrap(), NAME, repeats);
    }

    @Override
    public Map<Integer, Long> ends() throws IOException {
        Map<Integer, Long> ends = new TreeMap<>();
        consumed.ends().forEach((partition, end) -> ends.put(partition.partition(), end));
        ends.values().removeIf(end -> end == 0); // Nobody has written there, and no fence moved.
        return ends;
    }

    @Override
    public void close() {
        consumed.close();
    }
}
