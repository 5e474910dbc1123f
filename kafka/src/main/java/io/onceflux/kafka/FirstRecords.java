package io.onceflux.kafka;

import java.time.Duration;
import java.util.List;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InterruptException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Looks whether there are messages between two offsets. Offsets alone do not say that: marks of transactions, aborted records and what
 * compaction took away have them too. Blocks.
 */
final class FirstRecords implements AutoCloseable {

    private static final Logger log = LoggerFactory.getLogger(FirstRecords.class);
    private static final Duration POLL = Duration.ofMillis(200);
    private static final Duration LIMIT = Duration.ofSeconds(10); // For all partitions together.
    private static final Duration CLOSING = Duration.ofSeconds(1);

    private final Consumer<byte[], byte[]> reader;
    private final long deadline = System.nanoTime() + LIMIT.toNanos();

    private FirstRecords(Consumer<byte[], byte[]> reader) {
        this.reader = reader;
    }

    static FirstRecords reading(KafkaOptions options) {
        return new FirstRecords(
                Refusals.making(options, () -> new KafkaConsumer<>(ClientSettings.reader(options, "first-records"))));
    }

    /** What is between two offsets. */
    enum Between {
        NOTHING,
        MESSAGES,
        /** It could not be read, or not in time. */
        UNKNOWN
    }

    /** Whether there are messages from one offset on and before another. */
    Between look(TopicPartition partition, long from, long before) {
        try {
            reader.assign(List.of(partition));
            reader.seek(partition, from);
            long end = Math.min(
                    before, reader.endOffsets(List.of(partition), left()).getOrDefault(partition, before));
            while (reader.position(partition, left()) < end) {
                for (ConsumerRecord<byte[], byte[]> record : reader.poll(POLL)) {
                    return record.offset() < before ? Between.MESSAGES : Between.NOTHING;
                }
                if (left().isZero() && reader.position(partition, POLL) < end) {
                    return Between.UNKNOWN;
                }
            }
            return Between.NOTHING;
        } catch (InterruptException e) {
            throw e;
        } catch (KafkaException e) { // A record that nobody can read, among others.
            log.warn("what {} has between offsets {} and {} cannot be read", partition, from, before, e);
            return Between.UNKNOWN;
        }
    }

    private Duration left() {
        return Duration.ofNanos(Math.max(0, deadline - System.nanoTime()));
    }

    @Override
    public void close() {
        reader.close(CLOSING);
    }
}
