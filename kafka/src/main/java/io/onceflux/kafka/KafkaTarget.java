package io.onceflux.kafka;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.onceflux.outbox.OutboxMessage;
import io.onceflux.outbox.Target;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Mono;
import reactor.core.publisher.MonoSink;
import reactor.core.scheduler.Scheduler;

/**
 * Sends entries of an outbox to a topic of Kafka, stored by all replicas in sync. The key of the record is that of the entry, so that those
 * with an equal key are in one partition, in their order. The idempotency key is in the header {@value #IDEMPOTENCY_KEY}, by which a consumer
 * finds duplicates ({@link KafkaOptions.Builder#messageIdFromHeader}); the other headers are the entry's.
 *
 * <p>It has a producer and a thread of its own, made when the first entry is sent. {@link #close} ends both.
 */
public final class KafkaTarget implements Target {

    /** The header that has the idempotency key. */
    public static final String IDEMPOTENCY_KEY = "idempotency-key";

    private static final Duration CLOSING = Duration.ofSeconds(3);

    private final String topic;
    private final Map<String, Object> properties;
    private final Scheduler thread;
    private @Nullable Producer<byte[], byte[]> producer;

    private KafkaTarget(String topic, Map<String, Object> properties) {
        this.topic = topic;
        this.properties = properties;
        this.thread = BrokerThread.start("onceflux-kafka-outbox-" + topic);
    }

    /**
     * A topic, which must be there, or be created by the broker.
     *
     * @param name of the topic
     * @param producerProperties of the Kafka client, by the names that it gives them: {@code bootstrap.servers} and security at least. {@code
     *     acks} is all, {@code enable.idempotence} true, and serializers are not for you. {@code max.block.ms} (2 s) and {@code
     *     delivery.timeout.ms} (6 s) together are to be less than the relay's limit for a send: what is stored after that is sent again
     * @throws io.onceflux.InvalidSetupException if one of them is set otherwise
     */
    public static KafkaTarget topic(String name, Map<String, Object> producerProperties) {
        Checked.topic("topic", name);
        Map<String, Object> given = ClientSettings.checkedForOutbox(producerProperties);
        Map<String, Object> all = new HashMap<>();
        all.put(ProducerConfig.CLIENT_ID_CONFIG, "onceflux-outbox");
        all.put(ProducerConfig.LINGER_MS_CONFIG, 0);
        all.put(ProducerConfig.MAX_BLOCK_MS_CONFIG, 2_000);
        all.put(ProducerConfig.REQUEST_TIMEOUT_MS_CONFIG, 3_000);
        all.putAll(given);
        all.putIfAbsent(ProducerConfig.DELIVERY_TIMEOUT_MS_CONFIG, (int) Math.max(
                6_000L,
                ClientSettings.number(all, ProducerConfig.LINGER_MS_CONFIG, 0)
                        + ClientSettings.number(all, ProducerConfig.REQUEST_TIMEOUT_MS_CONFIG, 0)));
        all.put(ProducerConfig.ACKS_CONFIG, "all");
        all.put(ProducerConfig.ENABLE_IDEMPOTENCE_CONFIG, true);
        all.put(ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class);
        all.put(ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class);
        return new KafkaTarget(name, all);
    }

    /** Fails with what the Kafka client says. */
    @Override
    public Publisher<Void> send(OutboxMessage message) {
        return Mono.create(sink -> {
            AtomicBoolean cancelled = new AtomicBoolean();
            MonoSink<Void> caller = sink.onCancel(() -> cancelled.set(true));
            thread.schedule(() -> {
                if (!cancelled.get()) {
                    sendNow(message, caller);
                }
            });
        });
    }

    /** Blocks while the client does not know the topic. */
    private void sendNow(OutboxMessage message, MonoSink<Void> caller) {
        try {
            Future<?> unused = open().send(record(message), (metadata, error) -> {
                if (error == null) {
                    caller.success();
                } else {
                    caller.error(error);
                }
            });
        } catch (RuntimeException e) {
            if (!(e instanceof RetriableException)) {
                abandon(); // It may not be of use any more.
            }
            caller.error(e);
        } catch (Error e) { // Its caller would wait for a signal that never comes.
            caller.error(e);
            throw e;
        }
    }

    private ProducerRecord<byte[], byte[]> record(OutboxMessage message) {
        ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(
                topic, null, message.appendedAt().toEpochMilli(), message.key().getBytes(UTF_8), message.payload());
        message.headers().forEach((name, value) -> record.headers().add(name, value.getBytes(UTF_8)));
        record.headers().remove(IDEMPOTENCY_KEY);
        record.headers().add(IDEMPOTENCY_KEY, message.idempotencyKey().getBytes(UTF_8));
        return record;
    }

    private Producer<byte[], byte[]> open() {
        Producer<byte[], byte[]> open = producer;
        if (open == null) {
            open = new KafkaProducer<>(properties);
            producer = open;
        }
        return open;
    }

    private void abandon() {
        Producer<byte[], byte[]> old = producer;
        producer = null;
        if (old != null) {
            old.close(CLOSING);
        }
    }

    /** Ends its producer; after the relay has ended. */
    public Mono<Void> close() {
        return BrokerThread.call(thread, () -> {
                    abandon();
                    return true;
                })
                .then(Mono.fromRunnable(thread::dispose));
    }

    @Override
    public String toString() {
        return "KafkaTarget[topic '" + topic + "']";
    }
}
