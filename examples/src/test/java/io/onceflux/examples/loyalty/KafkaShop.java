package io.onceflux.examples.loyalty;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.awaitility.Awaitility.await;

import io.onceflux.DeadLetters;
import io.onceflux.Delivery;
import io.onceflux.kafka.KafkaDeadLetters;
import io.onceflux.kafka.KafkaDeliveries;
import io.onceflux.kafka.KafkaOptions;
import io.onceflux.services.ConsumedTopic;
import io.onceflux.services.KafkaService;
import java.io.IOException;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import reactor.core.publisher.Flux;

/** With a topic of Kafka of two partitions, and a group of the same name. */
final class KafkaShop extends Shop {

    final String topic = "loyalty-" + System.nanoTime();
    final ConsumedTopic consumed;
    private final KafkaProducer<byte[], byte[]> producer;

    KafkaShop() throws IOException {
        String bootstrap = KafkaService.shared().bootstrap();
        consumed = ConsumedTopic.at(bootstrap, topic, topic, LIMIT);
        consumed.create(2);
        await().atMost(LIMIT).until(() -> consumed.ends().size() == 2);
        producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", bootstrap), new ByteArraySerializer(), new ByteArraySerializer());
    }

    KafkaOptions.Builder options() {
        return KafkaOptions.topic(topic)
                .bootstrapServers(KafkaService.shared().bootstrap())
                .groupId(topic)
                .createDeadLetterTopics();
    }

    @Override
    Flux<Delivery<byte[]>> orders() {
        return KafkaDeliveries.from(options().build());
    }

    @Override
    DeadLetters deadLetters() {
        return KafkaDeadLetters.of(options().build());
    }

    @Override
    Map<String, String> brokerSettings() {
        return Map.of(
                "loyalty.kafka.bootstrap", KafkaService.shared().bootstrap(),
                "loyalty.topic", topic,
                "loyalty.group", topic);
    }

    @Override
    void awaitConsumer() {
        await().atMost(LIMIT).until(() -> consumed.sharing() == 1);
    }

    @Override
    void publish(String json) throws Exception {
        publish(new ProducerRecord<>(topic, json.getBytes(UTF_8)));
    }

    void publish(ProducerRecord<byte[], byte[]> record) throws Exception {
        producer.send(record).get();
    }

    @Override
    void awaitDeadLetters(int count) {
        await().atMost(LIMIT)
                .until(() -> deadLetters().list().count().blockOptional(LIMIT).orElseThrow() == count);
    }

    @Override
    public void close() throws IOException {
        producer.close();
        consumed.delete();
        consumed.close();
        super.close();
    }
}
