package io.onceflux.kafka;

import io.onceflux.Settlement;
import java.io.IOException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;

/**
 * Stores dead letters, each confirmed by all replicas in sync, one at a time, on a thread of its own: Kafka's producer blocks while it
 * does not know the topic. Reactor Kafka's {@code KafkaSender} calls it on the thread that asks.
 */
final class DeadLetterProducer {

    private static final Duration CLOSING = Duration.ofSeconds(1);

    private final KafkaOptions options;
    private final Scheduler thread;
    private @Nullable Producer<byte[], byte[]> producer;

    DeadLetterProducer(KafkaOptions options) {
        this.options = options;
        this.thread = BrokerThread.start("onceflux-kafka-dead-letters-" + options.groupId());
    }

    /**
     * Completes when the dead letter is stored. If it is cancelled before its turn, nothing is sent. What has begun goes on to its end,
     * cancelled or not: it may still be stored, and to begin again would make a second copy.
     *
     * @param stored whether this message's dead letter is stored; who asks again waits for what has begun, and sees it there
     */
    Mono<Void> publish(ConsumerRecord<byte[], byte[]> original, Settlement.DeadLetter why, AtomicBoolean stored) {
        return Mono.defer(() -> stored.get()
                ? Mono.empty()
                : BrokerThread.call(thread, () -> {
                            if (!stored.get()) {
                                publishNow(original, why);
                                stored.set(true);
                            }
                            return true;
                        })
                        .then());
    }

    /** Waits for what has begun. */
    Mono<Void> close() {
        return BrokerThread.call(thread, () -> {
                    abandon();
                    return true;
                })
                .then();
    }

    Scheduler thread() {
        return thread;
    }

    private void publishNow(ConsumerRecord<byte[], byte[]> original, Settlement.DeadLetter why) throws IOException {
        DeadLetterRecord letter = new DeadLetterRecord(original, why, options.deadLetterTopicOf(original.topic()));
        ProducerRecord<byte[], byte[]> next = letter.next();
        while (next != null && !isStored(next)) {
            next = letter.next();
        }
        if (next == null) {
            throw new IOException(
                    "topic '%s' takes not even the description of a dead letter: raise its max.message.bytes"
                            .formatted(options.deadLetterTopicOf(original.topic())));
        }
    }

    /** False if it is too large. */
    private boolean isStored(ProducerRecord<byte[], byte[]> record) throws IOException {
        try {
            store(producer(), record);
            return true;
        } catch (RecordTooLargeException e) {
            return false;
        } catch (IOException | RuntimeException e) {
            abandon();
            throw e;
        }
    }

    /** Blocks until it is confirmed, for as long as the producer's limits allow. */
    static void store(Producer<byte[], byte[]> producer, ProducerRecord<byte[], byte[]> record) throws IOException {
        try {
            producer.send(record).get();
        } catch (ExecutionException e) {
            RecordTooLargeException tooLarge = Refusals.find(e, RecordTooLargeException.class);
            if (tooLarge != null) {
                throw tooLarge;
            }
            throw new IOException(
                    "topic '%s' did not take a record: %s".formatted(record.topic(), Refusals.wordsOf(e)),
                    e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted while storing a record", e);
        }
    }

    private Producer<byte[], byte[]> producer() {
        Producer<byte[], byte[]> open = producer;
        if (open == null) {
            open = open(options, null);
            producer = open;
        }
        return open;
    }

    /** @param transactionalId null for a producer without transactions */
    static Producer<byte[], byte[]> open(KafkaOptions options, @Nullable String transactionalId) {
        Map<String, Object> settings = transactionalId == null
                ? ClientSettings.deadLetterProducer(options)
                : ClientSettings.replayProducer(options, transactionalId);
        return Refusals.making(options, () -> new KafkaProducer<>(settings));
    }

    private void abandon() {
        Producer<byte[], byte[]> old = producer;
        producer = null;
        if (old != null) {
            old.close(CLOSING);
        }
    }
}
