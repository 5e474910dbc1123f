package io.onceflux.kafka;

import java.time.Duration;
import java.util.List;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Looks whether there are messages between two offsets. Offsets alone do not say that: marks of transactions, aborted records and what
 * compaction took away have them too. Blocks.
 */
final class FirstRecords implements AutoCloseable {

    private static final Logger log = LoggerFactory.getLogger(FirstRecords.class);
    private static final Duration POLL = Duration.ofMillis(200);
    private static final Duration LIMIT = Duration.ofSeconds(10);
    private static final Duration CLOSING = Duration.ofSeconds(1);

    private final Consumer<byte[], byte[]> reader;

    private FirstRecords(Consumer<byte[], byte[]> reader) {
        this.reader = reader;
    }

    static FirstRecords reading(KafkaOptions options) {
        return new FirstRecords(
                Refusals.making(options, () -> new KafkaConsumer<>(ClientSettings.reader(options, "first-records"))));
    }

    /** The offset of the first message from one offset on and before another; null if there is none, or it did not come in time. */
    @Nullable
    Long firstWithin(TopicPartition partition, long from, long before) {
        reader.assign(List.of(partition));
        reader.seek(partition, from);
        long start = System.nanoTime();
        while (reader.position(partition) < before) {
            for (ConsumerRecord<byte[], byte[]> record : reader.poll(POLL)) {
                return record.offset() < before ? record.offset() : null;
            }
            if (System.nanoTime() - start > LIMIT.toNanos()) {
                log.debug("what {} has between {} and {} could not be read in time", partition, from, before);
                return null;
            }
        }
        return null;
    }

    @Override
    public void close() {
        reader.close(CLOSING);
    }
}
