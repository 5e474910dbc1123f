package io.onceflux.kafka;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.onceflux.DeliveriesContract;
import io.onceflux.Delivery;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.producer.ProducerRecord;
import reactor.core.publisher.Flux;

/** Kafka keeps to the contract of deliveries. */
class KafkaDeliveriesTest extends DeliveriesContract {

    @Override
    protected Place open() {
        Broker broker = Broker.create();
        broker.create(1);
        return new Place() {
            @Override
            public Flux<Delivery<byte[]>> deliveries() {
                return KafkaDeliveries.from(broker.options().build());
            }

            @Override
            public void publish(String id, byte[] body, Map<String, String> headers) {
                ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(broker.topic(), id.getBytes(UTF_8), body);
                record.headers().add(Broker.ID, id.getBytes(UTF_8));
                headers.forEach((name, value) -> record.headers().add(name, value.getBytes(UTF_8)));
                broker.publish(record);
            }

            @Override
            public long backlog() {
                return broker.lag();
            }

            @Override
            public List<Letter> deadLetters() {
                return broker.deadLetters().stream()
                        .map(record -> {
                            Map<String, String> headers = new HashMap<>();
                            record.headers().forEach(one -> headers.put(one.key(), new String(one.value(), UTF_8)));
                            return new Letter(record.value(), headers);
                        })
                        .toList();
            }

            @Override
            public String threads() {
                return broker.group();
            }

            @Override
            public void close() {
                broker.close();
            }
        };
    }
}
