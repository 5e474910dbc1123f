package io.onceflux.services;

import java.io.IOException;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** A topic of Kafka and the group that consumes it, as the broker sees them. Every call but delete blocks, and fails if the broker does not answer. */
public final class ConsumedTopic implements AutoCloseable {

    private final String topic;
    private final String group;
    private final Duration limit;
    private final Admin admin;

    private ConsumedTopic(String topic, String group, Duration limit, Admin admin) {
        this.topic = topic;
        this.group = group;
        this.limit = limit;
        this.admin = admin;
    }

    /**
     * Connects; the topic and the group need not be there yet.
     *
     * @param limit for each answer of the broker
     */
    public static ConsumedTopic at(String bootstrap, String topic, String group, Duration limit) {
        return new ConsumedTopic(
                topic,
                group,
                limit,
                Admin.create(Map.of(
                        "bootstrap.servers",
                        bootstrap,
                        "request.timeout.ms",
                        (int) limit.toMillis() / 2,
                        "default.api.timeout.ms",
                        (int) limit.toMillis(),
                        "reconnect.backoff.max.ms",
                        200)));
    }

    /** For what else is to be asked. */
    public Admin admin() {
        return admin;
    }

    /** Where dead letters go, if nothing else is said. */
    public String deadLetters() {
        return topic + ".DLT";
    }

    /** Creates the topic. */
    public void create(int partitions) throws IOException {
        create(topic, partitions);
    }

    /** Creates that of its dead letters. */
    public void createDeadLetters(int partitions) throws IOException {
        create(deadLetters(), partitions);
    }

    private void create(String name, int partitions) throws IOException {
        answer(admin.createTopics(List.of(new NewTopic(name, Optional.of(partitions), Optional.empty())))
                .all());
    }

    /** Deletes both, and does not wait until they are gone. */
    public void delete() {
        List.of(topic, deadLetters()).forEach(name -> admin.deleteTopics(List.of(name)));
    }

    /** Where the log of each partition ends; empty if there is no topic. */
    public Map<TopicPartition, Long> ends() throws IOException {
        return ends(topic);
    }

    /** Where the log of each partition of another topic ends; empty if there is none. */
    public Map<TopicPartition, Long> ends(String name) throws IOException {
        Map<TopicPartition, OffsetSpec> asked = new HashMap<>();
        try {
            answer(admin.describeTopics(List.of(name)).allTopicNames())
                    .values()
                    .forEach(found -> found.partitions()
                            .forEach(one -> asked.put(new TopicPartition(name, one.partition()), OffsetSpec.latest())));
        } catch (IOException e) {
            if (e.getCause() instanceof UnknownTopicOrPartitionException) {
                return Map.of();
            }
            throw e;
        }
        Map<TopicPartition, Long> ends = new HashMap<>();
        answer(admin.listOffsets(asked).all()).forEach((partition, end) -> ends.put(partition, end.offset()));
        return ends;
    }

    /** How many offsets of dead letters there are, with those of marks of replays and their transactions; 0 if there is no topic for them. */
    public long givenUp() throws IOException {
        return ends(deadLetters()).values().stream().mapToLong(Long::longValue).sum();
    }

    /** The offsets that the group has committed, in this topic or others. */
    public Map<TopicPartition, OffsetAndMetadata> committed() throws IOException {
        Map<TopicPartition, OffsetAndMetadata> committed =
                new HashMap<>(answer(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata()));
        committed.values().removeIf(offset -> offset == null);
        return committed;
    }

    /** How many offsets of the topic the group has not passed. */
    public long lag() throws IOException {
        Map<TopicPartition, OffsetAndMetadata> committed = committed();
        return ends().entrySet().stream()
                .mapToLong(end -> {
                    OffsetAndMetadata done = committed.get(end.getKey());
                    return end.getValue() - (done == null ? 0 : done.offset());
                })
                .sum();
    }

    /** The partitions that each member of the group has; empty if there is no group. */
    public List<Set<TopicPartition>> members() throws IOException {
        try {
            ConsumerGroupDescription found =
                    answer(admin.describeConsumerGroups(List.of(group)).all()).get(group);
            return found == null
                    ? List.of()
                    : found.members().stream()
                            .map(member -> member.assignment().topicPartitions())
                            .toList();
        } catch (IOException e) {
            if (e.getCause() instanceof GroupIdNotFoundException) {
                return List.of();
            }
            throw e;
        }
    }

    /** How many members share all the partitions; 0 while the group is still sharing them out. */
    public int sharing() throws IOException {
        List<Set<TopicPartition>> members = members();
        int partitions = ends().size();
        boolean shared = members.stream().mapToInt(Set::size).sum() == partitions
                && (members.size() > partitions || members.stream().noneMatch(Set::isEmpty));
        return shared ? members.size() : 0;
    }

    /** Sets the offset of the group in all partitions, as {@code kafka-consumer-groups --reset-offsets} does. Only while it has no members. */
    public void resetTo(long offset) throws IOException {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        ends().keySet().forEach(partition -> offsets.put(partition, new OffsetAndMetadata(offset)));
        answer(admin.alterConsumerGroupOffsets(group, offsets).all());
    }

    private <T> T answer(KafkaFuture<T> future) throws IOException {
        try {
            return future.get(limit.toMillis(), TimeUnit.MILLISECONDS);
        } catch (ExecutionException e) {
            throw new IOException("the broker has refused, or could not be asked", e.getCause());
        } catch (TimeoutException e) {
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
