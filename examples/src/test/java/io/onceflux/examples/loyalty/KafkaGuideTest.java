package io.onceflux.examples.loyalty;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import io.onceflux.Delivery;
import io.onceflux.IdempotentConsumer;
import io.onceflux.Outcome;
import io.onceflux.kafka.KafkaDeliveries;
import io.onceflux.kafka.KafkaOptions;
import io.onceflux.kafka.OffsetFence;
import io.onceflux.postgres.OffsetTable;
import io.r2dbc.spi.ConnectionFactory;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.Disposable;
import reactor.core.publisher.Mono;

/** What docs/kafka.md shows, on a real topic. */
class KafkaGuideTest {

    private static final Logger log = LoggerFactory.getLogger(KafkaGuideTest.class);
    private static final ObjectReader JSON = new ObjectMapper().readerFor(OrderCompleted.class);

    private final KafkaShop shop;

    KafkaGuideTest() throws Exception {
        shop = new KafkaShop();
    }

    @AfterEach
    void close() throws Exception {
        shop.close();
    }

    @Test
    void theOptionsAreComplete() {
        // region: kafkaOptions
        KafkaOptions topic = KafkaOptions.topic("orders")
                .bootstrapServers("broker:9092")
                .groupId("loyalty")
                .messageIdFromHeader("event-id")
                .property("security.protocol", "SASL_SSL") // and whatever else the Kafka client knows
                .build();
        // endregion
        assertThat(topic.topics()).containsExactly("orders");
        assertThat(topic.messageIdHeader()).isEqualTo("event-id");
    }

    @Test
    void anOrderThatIsSentTwiceWithOneEventIdIsCreditedOnce() throws Exception {
        IdempotentConsumer<OrderCompleted> loyalty = IdempotentConsumer.<OrderCompleted>named("loyalty")
                .identifiedByMessageId()
                .effect((order, db) -> credit(order, db))
                .build(shop.pool);
        KafkaOptions topic = shop.options().messageIdFromHeader("event-id").build();
        // region: kafka
        Disposable running = KafkaDeliveries.from(topic)
                .map(Delivery.decoding(JSON::<OrderCompleted>readValue))
                .transform(loyalty) // a consumer with identifiedByMessageId(), or with an id from the payload
                .subscribe(outcome -> {}, error -> log.error("the consumer has ended", error));
        // endregion

        for (String eventId : List.of("e-1", "e-1", "e-2")) {
            ProducerRecord<byte[], byte[]> event = new ProducerRecord<>(
                    shop.topic, "{\"orderId\":\"A-1\",\"customerId\":\"C-1\",\"points\":10}".getBytes(UTF_8));
            event.headers().add("event-id", eventId.getBytes(UTF_8));
            shop.publish(event);
        }
        await().atMost(Shop.LIMIT).until(() -> shop.consumed.lag() == 0);
        loyalty.stop().block(Shop.LIMIT);

        await().until(running::isDisposed);
        assertThat(shop.points("C-1")).isEqualTo(20);
        assertThat(shop.claims()).isEqualTo(2);
    }

    private static Mono<Void> credit(OrderCompleted order, DatabaseClient db) {
        return db.sql("UPDATE balances SET points = points + :points WHERE customer_id = :customer")
                .bind("points", order.points())
                .bind("customer", order.customerId())
                .then();
    }

    @Test
    void aTopicOfReadingsThatIsReadAgainFromItsStartIsAllDuplicates() throws Exception {
        OffsetTable.consumerOffsets().create(shop.pool).block(Shop.LIMIT);
        shop.run("CREATE TABLE readings (celsius text NOT NULL)");
        for (int celsius = 0; celsius < 20; celsius++) {
            shop.publish(String.valueOf(celsius));
        }
        assertThat(readAll()).hasSize(20).allMatch(Outcome.Applied.class::isInstance);

        await().atMost(Shop.LIMIT).until(() -> shop.consumed.members().isEmpty());
        shop.consumed.resetTo(0);
        assertThat(readAll()).hasSize(20).allMatch(Outcome.Duplicate.class::isInstance);

        assertThat(shop.number("SELECT count(DISTINCT celsius) FROM readings")).isEqualTo(20);
        assertThat(shop.number("SELECT count(*) FROM readings")).isEqualTo(20);
        assertThat(shop.number("SELECT sum(next_offset)::bigint FROM consumer_offsets"))
                .isEqualTo(20);
    }

    private List<Outcome> readAll() {
        ConnectionFactory connections = shop.pool;
        List<Outcome> outcomes = new CopyOnWriteArrayList<>();
        KafkaOptions topic = shop.options().messageIdFromPosition().build();
        // region: offsetFence
        IdempotentConsumer<SensorReading> readings = IdempotentConsumer.<SensorReading>named("readings")
                .identifiedByMessageId()
                .maxBatch(256)
                .claims(OffsetFence.in(OffsetTable.consumerOffsets()))
                .effect((reading, db) -> store(reading, db))
                .build(connections);
        // endregion
        Disposable running = KafkaDeliveries.from(topic)
                .map(Delivery.decoding(body -> new SensorReading(new String(body, UTF_8))))
                .transform(readings)
                .subscribe(outcomes::add);
        await().atMost(Shop.LIMIT).until(() -> shop.consumed.lag() == 0 && outcomes.size() >= 20);
        readings.stop().block(Shop.LIMIT);
        await().until(running::isDisposed);
        return outcomes;
    }

    private record SensorReading(String celsius) {}

    private static Mono<Void> store(SensorReading reading, DatabaseClient db) {
        return db.sql("INSERT INTO readings VALUES (:celsius)")
                .bind("celsius", reading.celsius())
                .then();
    }
}
