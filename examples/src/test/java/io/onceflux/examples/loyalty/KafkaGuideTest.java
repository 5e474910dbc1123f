package io.onceflux.examples.loyalty;

import static io.onceflux.examples.loyalty.LoyaltyService.JSON;
import static io.onceflux.examples.loyalty.Shop.order;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.DeadLetter;
import io.onceflux.DeadLetters;
import io.onceflux.Delivery;
import io.onceflux.IdempotentConsumer;
import io.onceflux.Outcome;
import io.onceflux.kafka.KafkaDeadLetters;
import io.onceflux.kafka.KafkaDeliveries;
import io.onceflux.kafka.KafkaOptions;
import io.onceflux.kafka.OffsetFence;
import io.onceflux.postgres.OffsetTable;
import io.onceflux.services.ForkedJvm;
import io.r2dbc.spi.ConnectionFactory;
import java.util.List;
import java.util.Map;
import java.util.Objects;
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

    private final KafkaShop shop;

    KafkaGuideTest() throws Exception {
        shop = new KafkaShop();
    }

    @AfterEach
    void close() throws Exception {
        shop.close();
    }

    @Test
    void theServiceCreditsEachOrderOnceUntilItIsToldToEnd() throws Exception {
        try (ForkedJvm service = ForkedJvm.start(KafkaGuide.class, shop.settings())) {
            shop.publish(order("A-1", "C-1", 10));
            shop.publish(order("A-1", "C-1", 10));
            shop.publish(order("A-2", "C-9", 10));
            shop.awaitConsumer();
            shop.awaitDeadLetters(1);
            await().atMost(Shop.LIMIT).until(() -> shop.consumed.lag() == 0);
            service.terminate();
            assertThat(service.exitCode()).isEqualTo(143);
        }
        assertThat(shop.consumed.members()).as("it has left the group").isEmpty();
        assertThat(shop.points("C-1")).isEqualTo(10);
    }

    @Test
    void theServiceEndsWhereItsSetUpIsWrong() {
        Map<String, String> settings = shop.settings();
        settings.put("loyalty.topic", shop.topic + "-is-missing");
        try (ForkedJvm service = ForkedJvm.start(KafkaGuide.class, settings)) {
            assertThat(service.exitCode()).isEqualTo(1);
        }
    }

    @Test
    void aDeadLetterIsListedAndGivenBackAndIsANewOneIfItFailsAgain() throws Exception {
        KafkaOptions topic = shop.options().build();
        LoyaltyService service = new LoyaltyService(KafkaDeliveries.from(topic), shop.pool);
        Disposable running = service.run().subscribe();
        shop.publish(order("A-1", "C-9", 10));
        shop.awaitConsumer();
        shop.awaitDeadLetters(1);
        Map<String, String> first = lastDeadLetter(topic).headers();
        assertThat(first).containsEntry("kafka-topic", shop.consumed.deadLetters());
        assertThat(first).containsEntry("x-onceflux-topic", shop.topic).containsEntry("x-onceflux-offset", "0");

        listAndReplay(topic);
        await().atMost(Shop.LIMIT).until(() -> shop.consumed.givenUp() == 4); // With the mark, and the transaction's.
        shop.awaitDeadLetters(1);
        assertThat(placeOf(lastDeadLetter(topic).headers())).isNotEqualTo(placeOf(first));

        shop.addCustomers("C-9");
        listAndReplay(topic);
        await().atMost(Shop.LIMIT).until(() -> shop.points("C-9") == 10);
        shop.awaitDeadLetters(0);
        service.stop().block(Shop.LIMIT);
        await().until(running::isDisposed);
    }

    private static DeadLetter lastDeadLetter(KafkaOptions topic) {
        return Objects.requireNonNull(KafkaDeadLetters.of(topic).list().blockLast(Shop.LIMIT));
    }

    private static String placeOf(Map<String, String> headers) {
        return headers.get("kafka-partition") + "/" + headers.get("kafka-offset");
    }

    private static void listAndReplay(KafkaOptions topic) {
        // region: kafkaDeadLetters
        DeadLetters letters = KafkaDeadLetters.of(topic); // the consumer's options
        letters.list().doOnNext(letter -> log.info("{}", letter)).then().block();
        letters.replay(letter -> letter.reason().startsWith("no customer"), 50) // in a second
                .doOnNext(letter -> log.info("given back: {}", letter))
                .then()
                .block();
        // endregion
    }

    @Test
    void anOrderThatIsSentTwiceWithOneEventIdIsCreditedOnce() throws Exception {
        IdempotentConsumer<OrderCompleted> loyalty = IdempotentConsumer.<OrderCompleted>named("loyalty")
                .identifiedByMessageId()
                .effect((order, db) -> credit(order, db))
                .build(shop.pool);
        KafkaOptions topic = shop.options().messageIdFromHeader("event-id").build();
        Disposable running = KafkaDeliveries.from(topic)
                .map(Delivery.decoding(JSON::<OrderCompleted>readValue))
                .transform(loyalty)
                .subscribe();

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
