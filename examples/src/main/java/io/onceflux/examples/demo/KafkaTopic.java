package io.onceflux.examples.demo;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.onceflux.examples.loyalty.OrderCompleted;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * A topic of Kafka and the group that consumes it. The shop does not choose partitions: its messages go round, so that the copies of an order
 * are in different ones.
 */
final class KafkaTopic implements Broker {

    private static final int PARTITIONS = 12;
    private static final long LIMIT_SECONDS = 30;
    private static final ObjectMapper JSON = new ObjectMapper();

    private final String topic;
    private final String bootstrap;
    private final Admin admin;
    private final KafkaProducer<byte[], byte[]> shop;
    private int published;

    private KafkaTopic(String topic, String bootstrap, Admin admin, KafkaProducer<byte[], byte[]> shop) {
        this.topic = topic;
        this.bootstrap = bootstrap;
        this.admin = admin;
        this.shop = shop;
    }

    static KafkaTopic create(String topic, String bootstrap) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "acks", "all");
        Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
        get(admin.createTopics(List.of(new NewTopic(topic, Optional.of(PARTITIONS), Optional.empty())))
                .all());
        return new KafkaTopic(
                topic,
                bootstrap,
                admin,
                new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer()));
    }

    @Override
    public Map<String, String> settings(Contender contender) {
        return Map.of(
                contender.property("kafka.bootstrap"), bootstrap,
                contender.property("topic"), topic,
                contender.property("group"), group());
    }

    private String group() {
        return topic;
    }

    @Override
    public void publish(List<OrderCompleted> orders) throws Exception {
        List<Future<?>> sent = new ArrayList<>();
        for (OrderCompleted order : orders) {
            int partition = published++ % PARTITIONS;
            sent.add(shop.send(new ProducerRecord<>(topic, partition, null, JSON.writeValueAsBytes(order))));
        }
        for (Future<?> one : sent) {
            one.get(LIMIT_SECONDS, TimeUnit.SECONDS);
        }
    }

    /** Behind what the group has committed. */
    @Override
    public long backlog() throws Exception {
        Map<TopicPartition, OffsetAndMetadata> committed =
                get(admin.listConsumerGroupOffsets(group()).partitionsToOffsetAndMetadata());
        return ends(topic).entrySet().stream()
                .mapToLong(end -> end.getValue()
                        - (committed.get(end.getKey()) == null
                                ? 0
                                : committed.get(end.getKey()).offset()))
                .sum();
    }

    @Override
    public long deadLetters() throws Exception {
        return ends(topic + ".DLT").values().stream().mapToLong(Long::longValue).sum();
    }

    private Map<TopicPartition, Long> ends(String name) throws Exception {
        Map<TopicPartition, OffsetSpec> asked = new HashMap<>();
        try {
            get(admin.describeTopics(List.of(name)).allTopicNames()).values().stream()
                    .flatMap(found -> found.partitions().stream())
                    .forEach(one -> asked.put(new TopicPartition(name, one.partition()), OffsetSpec.latest()));
        } catch (ExecutionException e) {
            if (e.getCause() instanceof UnknownTopicOrPartitionException) {
                return Map.of(); // Nobody has asked for it.
            }
            throw e;
        }
        Map<TopicPartition, Long> ends = new HashMap<>();
        get(admin.listOffsets(asked).all()).forEach((partition, end) -> ends.put(partition, end.offset()));
        return ends;
    }

    /** None while the group shares the partitions out. */
    @Override
    public int consumers() throws Exception {
        List<Integer> shares = members().stream()
                .map(member -> member.assignment().topicPartitions().size())
                .toList();
        boolean shared = shares.stream().mapToInt(Integer::intValue).sum() == PARTITIONS && !shares.contains(0);
        return shared ? shares.size() : 0;
    }

    private List<MemberDescription> members() throws Exception {
        try {
            ConsumerGroupDescription group =
                    get(admin.describeConsumerGroups(List.of(group())).all()).get(group());
            return group == null ? List.of() : List.copyOf(group.members());
        } catch (ExecutionException e) {
            if (e.getCause() instanceof GroupIdNotFoundException) {
                return List.of();
            }
            throw e;
        }
    }

    @Override
    public boolean keepsWhatIsDone() {
        return true;
    }

    @Override
    public void rewind() throws Exception {
        long start = System.nanoTime();
        while (!members().isEmpty()) { // Who did not take leave is missed once its session has timed out.
            if (System.nanoTime() - start > TimeUnit.SECONDS.toNanos(LIMIT_SECONDS)) {
                throw new IllegalStateException("group " + group() + " still has members: " + members());
            }
            Thread.sleep(100);
        }
        Map<TopicPartition, OffsetAndMetadata> begin = new HashMap<>();
        ends(topic).keySet().forEach(partition -> begin.put(partition, new OffsetAndMetadata(0)));
        get(admin.alterConsumerGroupOffsets(group(), begin).all());
    }

    @Override
    public String toString() {
        return "topic";
    }

    /** The one for dead letters may not be there; nobody minds. */
    @Override
    public void close() {
        shop.close();
        List.of(topic, topic + ".DLT").forEach(name -> admin.deleteTopics(List.of(name)));
        admin.close();
    }

    private static <T> T get(KafkaFuture<T> answer) throws Exception {
        return answer.get(LIMIT_SECONDS, TimeUnit.SECONDS);
    }
}
