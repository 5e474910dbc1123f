package io.onceflux.kafka;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Queue;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.publisher.SynchronousSink;
import reactor.core.scheduler.Scheduler;

/**
 * Topics of dead letters that are being looked through, partition by partition, up to what was there at the beginning. Every call
 * blocks, and comes from one thread.
 */
final class DeadLetterTopics {

    private static final Logger log = LoggerFactory.getLogger(DeadLetterTopics.class);
    private static final Duration POLL = Duration.ofMillis(200);
    private static final Duration STILL_LIMIT = Duration.ofSeconds(30);
    private static final Duration CLOSING = Duration.ofSeconds(3);

    private final KafkaOptions options;
    private final Scheduler thread;
    private final Consumer<byte[], byte[]> consumer;
    private final boolean replaying;
    private final Map<TopicPartition, Long> ends;
    private final Map<TopicPartition, Set<Long>> givenBack = new HashMap<>();
    private final Set<String> writable = new HashSet<>();
    private final Map<String, ReplayProducer> replays = new HashMap<>();
    private final Queue<TopicPartition> left;
    private final Queue<ConsumerRecord<byte[], byte[]>> fetched = new ArrayDeque<>();
    private @Nullable TopicPartition at;
    private @Nullable String topic;

    private DeadLetterTopics(
            KafkaOptions options,
            Scheduler thread,
            boolean replaying,
            Consumer<byte[], byte[]> consumer,
            Map<TopicPartition, Long> ends) {
        this.options = options;
        this.replaying = replaying;
        this.thread = thread;
        this.consumer = consumer;
        this.ends = ends;
        this.left = new ArrayDeque<>(ends.keySet().stream()
                .sorted(Comparator.comparing(TopicPartition::topic).thenComparing(TopicPartition::partition))
                .toList());
    }

    /** @param replaying whether letters are given back */
    static DeadLetterTopics open(KafkaOptions options, List<String> topics, Scheduler thread, boolean replaying)
            throws IOException {
        Consumer<byte[], byte[]> consumer =
                Refusals.making(options, () -> new KafkaConsumer<>(ClientSettings.reader(options, "dead-letters")));
        try {
            List<TopicPartition> partitions = new ArrayList<>();
            for (String topic : topics) {
                List<PartitionInfo> its = consumer.partitionsFor(topic);
                if (its == null || its.isEmpty()) {
                    throw new IOException("topic '%s' does not exist at %s".formatted(topic, options.broker()));
                }
                its.forEach(one -> partitions.add(new TopicPartition(one.topic(), one.partition())));
            }
            return new DeadLetterTopics(options, thread, replaying, consumer, consumer.endOffsets(partitions));
        } catch (IOException | RuntimeException e) {
            consumer.close(CLOSING);
            throw e;
        }
    }

    Scheduler thread() {
        return thread;
    }

    /** A mark comes after what it marks, so all of a topic are read before its first letter is told of: also those of a replay that has just ended. */
    private void beginTopic(String next) throws IOException {
        topic = next;
        if (replaying) {
            replays.put(next, ReplayProducer.open(options, next));
        }
        List<TopicPartition> its = ends.keySet().stream()
                .filter(partition -> partition.topic().equals(next))
                .toList();
        for (Map.Entry<TopicPartition, Long> end : consumer.endOffsets(its).entrySet()) {
            givenBack.put(end.getKey(), marks(end.getKey(), end.getValue()));
        }
    }

    private Set<Long> marks(TopicPartition partition, long end) throws IOException {
        begin(partition);
        Set<Long> marked = new HashSet<>();
        for (ConsumerRecord<byte[], byte[]> record = read(partition, end);
                record != null;
                record = read(partition, end)) {
            Long offset = KeptRecord.givenBack(record);
            if (offset != null) {
                marked.add(offset);
            }
        }
        return marked;
    }

    void next(SynchronousSink<KeptRecord> sink) {
        try {
            KeptRecord next = next();
            if (next == null) {
                sink.complete();
            } else {
                sink.next(next);
            }
        } catch (IOException | RuntimeException e) {
            sink.error(Refusals.explained(options, e));
        }
    }

    private @Nullable KeptRecord next() throws IOException {
        while (true) {
            TopicPartition partition = at;
            ConsumerRecord<byte[], byte[]> record =
                    partition == null ? null : read(partition, ends.getOrDefault(partition, 0L));
            if (partition != null && record != null) {
                boolean isGone = givenBack.getOrDefault(partition, Set.of()).contains(record.offset());
                if (!isGone && KeptRecord.givenBack(record) == null) {
                    return new KeptRecord(record, defaultTopic(record.topic()));
                }
            } else {
                at = left.poll();
                if (at == null) {
                    return null;
                }
                if (!at.topic().equals(topic)) {
                    beginTopic(at.topic());
                }
                begin(at);
            }
        }
    }

    private String defaultTopic(String deadLetterTopic) {
        return deadLetterTopic.endsWith(options.deadLetterSuffix())
                ? deadLetterTopic.substring(
                        0, deadLetterTopic.length() - options.deadLetterSuffix().length())
                : options.topics().get(0);
    }

    private void begin(TopicPartition partition) {
        fetched.clear();
        consumer.assign(List.of(partition));
        consumer.seekToBeginning(List.of(partition));
    }

    /** The next record before an offset; null if there is none. */
    private @Nullable ConsumerRecord<byte[], byte[]> read(TopicPartition partition, long end) throws IOException {
        long still = System.nanoTime();
        long position = consumer.position(partition);
        while (fetched.isEmpty() && position < end) {
            consumer.poll(POLL).forEach(fetched::add);
            if (consumer.position(partition) > position) {
                position = consumer.position(partition);
                still = System.nanoTime();
            } else if (System.nanoTime() - still > STILL_LIMIT.toNanos()) {
                throw new IOException("%s could not be read any further at %s".formatted(partition, options.broker()));
            }
        }
        ConsumerRecord<byte[], byte[]> next = fetched.poll();
        return next == null || next.offset() >= end ? null : next;
    }

    /** False, with a word in the log, for what is not whole. */
    boolean giveBack(KeptRecord letter) throws IOException {
        if (!letter.isWhole()) {
            log.warn(
                    "the dead letter at {}-{}, offset {}, is a part of its message and is not given back",
                    letter.record().topic(),
                    letter.record().partition(),
                    letter.record().offset());
            return false;
        }
        ProducerRecord<byte[], byte[]> original = letter.original();
        ProducerRecord<byte[], byte[]> mark = letter.mark();
        requireWrite(new TreeSet<>(List.of(original.topic(), mark.topic())));
        Objects.requireNonNull(replays.get(mark.topic())).giveBack(original, mark);
        return true;
    }

    /** Of both before anything is stored: a letter that is given back and cannot be marked would go back again with each replay. */
    private void requireWrite(Set<String> topics) throws IOException {
        if (writable.containsAll(topics)) {
            return;
        }
        try {
            new Topology(options).requireWrite(topics);
            writable.addAll(topics);
        } catch (KafkaException | UncheckedIOException e) {
            throw new IOException(
                    "the rights to topics %s could not be asked for at %s: %s"
                            .formatted(topics, options.broker(), Refusals.wordsOf(e)),
                    e);
        }
    }

    void close() {
        replays.values().forEach(ReplayProducer::close);
        consumer.close(CLOSING);
    }
}
