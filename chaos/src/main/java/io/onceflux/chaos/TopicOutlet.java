package io.onceflux.chaos;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.onceflux.chaos.consumer.ChaosConsumer;
import io.onceflux.chaos.consumer.Copy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.jspecify.annotations.Nullable;

/**
 * With the customer as the key of the record, and stored by all replicas before it counts as sent. The client's producer numbers its
 * records, so that one which it sends again is not stored twice; a burst that it has given up, and is sent again, may be.
 */
final class TopicOutlet implements Outlet {

    private static final int ANSWER_MILLIS = 3_000;
    private static final int CONFIRM_MILLIS = ANSWER_MILLIS + 100;
    /** Longer than the broker is away in any run. */
    private static final int PATIENT_MILLIS = 300_000;

    private final String bootstrap;
    private final String topic;
    private final int givesUpAfter;
    private @Nullable KafkaProducer<byte[], byte[]> producer;

    /** @param repeats whether a burst without an answer may be sent again by who calls; if not, the client is given the time that it takes */
    TopicOutlet(String bootstrap, String topic, boolean repeats) {
        this.bootstrap = bootstrap;
        this.topic = topic;
        this.givesUpAfter = repeats ? CONFIRM_MILLIS : PATIENT_MILLIS;
    }

    @Override
    public boolean send(List<Message> messages, List<Copy> copies) throws InterruptedException {
        try {
            KafkaProducer<byte[], byte[]> open = openProducer();
            List<Future<?>> sent = new ArrayList<>();
            for (int i = 0; i < messages.size(); i++) {
                sent.add(open.send(record(messages.get(i), copies.get(i))));
            }
            for (Future<?> one : sent) {
                one.get(2L * givesUpAfter, TimeUnit.MILLISECONDS);
            }
            return true;
        } catch (ExecutionException | TimeoutException | KafkaException e) {
            close();
            return false;
        }
    }

    private ProducerRecord<byte[], byte[]> record(Message message, Copy copy) {
        ProducerRecord<byte[], byte[]> record =
                new ProducerRecord<>(topic, message.customer().getBytes(UTF_8), message.body());
        record.headers().add(ChaosConsumer.ID, message.id().getBytes(UTF_8));
        record.headers().add(Copy.HEADER, Integer.toString(copy.number()).getBytes(UTF_8));
        return record;
    }

    private KafkaProducer<byte[], byte[]> openProducer() {
        KafkaProducer<byte[], byte[]> open = producer;
        if (open == null) {
            open = new KafkaProducer<>(
                    Map.of(
                            "bootstrap.servers",
                            bootstrap,
                            "acks",
                            "all",
                            "max.block.ms",
                            givesUpAfter,
                            "request.timeout.ms",
                            ANSWER_MILLIS,
                            "delivery.timeout.ms",
                            givesUpAfter,
                            "linger.ms",
                            5,
                            "reconnect.backoff.max.ms",
                            200),
                    new ByteArraySerializer(),
                    new ByteArraySerializer());
            producer = open;
        }
        return open;
    }

    @Override
    public void close() {
        KafkaProducer<byte[], byte[]> old = producer;
        producer = null;
        if (old != null) {
            old.close(Duration.ZERO);
        }
    }
}
