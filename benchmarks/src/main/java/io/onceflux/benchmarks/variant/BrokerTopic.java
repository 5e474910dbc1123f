package io.onceflux.benchmarks.variant;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.onceflux.benchmarks.scenario.Order;
import io.onceflux.benchmarks.scenario.Orders;
import io.onceflux.benchmarks.scenario.Site;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** A topic of 12 partitions, with the customer as the key of the record, filled before it is consumed. */
public final class BrokerTopic implements Backlog {

    private static final int PARTITIONS = 12;
    private static final int LIMIT_SECONDS = 60;

    private final String name;
    private final Orders orders;
    private final Admin admin;
    private final KafkaProducer<byte[], byte[]> producer;
    private long published;

    public BrokerTopic(Site site, Orders orders) {
        this.name = site.topic();
        this.orders = orders;
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", site.kafkaBootstrap());
        this.admin = Admin.create(settings);
        settings.put("acks", "all");
        settings.put("linger.ms", 5);
        this.producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
        get(admin.createTopics(List.of(
                        new NewTopic(name, Optional.of(PARTITIONS), Optional.empty()),
                        new NewTopic(deadLetters(), Optional.of(PARTITIONS), Optional.empty())))
                .all());
    }

    private String deadLetters() {
        return name + ".DLT";
    }

    @Override
    public void fill(long messages) {
        try {
            for (long i = 0; i < messages; i++) {
                Order order = orders.message(published++);
                var sent = producer.send(
                        new ProducerRecord<>(name, order.customerId().getBytes(UTF_8), order.toJson()));
                if (i == messages - 1) {
                    producer.flush();
                    sent.get(LIMIT_SECONDS, TimeUnit.SECONDS);
                }
            }
        } catch (InterruptedException | ExecutionException | TimeoutException e) {
            throw new IllegalStateException("the topic could not be filled", e);
        }
    }

    @Override
    public void requireEmpty() {
        Map<TopicPartition, OffsetAndMetadata> done =
                get(admin.listConsumerGroupOffsets(name).partitionsToOffsetAndMetadata());
        long left = count(name)
                - done.values().stream().mapToLong(OffsetAndMetadata::offset).sum();
        if (left > 0 || count(deadLetters()) > 0) {
            throw new IllegalStateException(
                    "%d messages are left in %s, %d given up".formatted(left, name, count(deadLetters())));
        }
    }

    /** Waits until so many consumers share the partitions. */
    public void awaitMembers(int count) {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIMIT_SECONDS);
        while (!isSharedBy(count)) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("the group has not become one of %d".formatted(count));
            }
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(100));
        }
    }

    private boolean isSharedBy(int count) {
        try {
            List<Integer> shares =
                    admin
                            .describeConsumerGroups(List.of(name))
                            .all()
                            .get(LIMIT_SECONDS, TimeUnit.SECONDS)
                            .values()
                            .stream()
                            .flatMap(group -> group.members().stream())
                            .map(member -> member.assignment().topicPartitions().size())
                            .toList();
            return shares.size() == count
                    && !shares.contains(0)
                    && shares.stream().mapToInt(Integer::intValue).sum() == PARTITIONS;
        } catch (InterruptedException | ExecutionException | TimeoutException e) {
            return false; // There is no group yet.
        }
    }

    private long count(String topic) {
        Map<TopicPartition, OffsetSpec> asked = new HashMap<>();
        IntStream.range(0, PARTITIONS)
                .forEach(partition -> asked.put(new TopicPartition(topic, partition), OffsetSpec.latest()));
        return get(admin.listOffsets(asked).all()).values().stream()
                .mapToLong(end -> end.offset())
                .sum();
    }

    @Override
    public long published() {
        return published;
    }

    @Override
    public long distinct() {
        return orders.distinct(published);
    }

    private static <T> T get(KafkaFuture<T> answer) {
        try {
            return answer.get(LIMIT_SECONDS, TimeUnit.SECONDS);
        } catch (InterruptedException | ExecutionException | TimeoutException e) {
            throw new IllegalStateException("the broker did not answer", e);
        }
    }

    @Override
    public void close() {
        producer.close();
        get(admin.deleteTopics(List.of(name, deadLetters())).all());
        admin.close();
    }
}
