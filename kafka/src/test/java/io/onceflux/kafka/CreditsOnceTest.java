package io.onceflux.kafka;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.Database;
import io.onceflux.Order;
import io.onceflux.Outcome;
import io.onceflux.PermanentFailure;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;

/** From the topic to the ledger: success, duplicate, failure, poison. */
class CreditsOnceTest {

    private final Database database = Database.create();
    private final Broker broker = Broker.create();

    @AfterEach
    void close() {
        database.assertNothingLeaked();
        broker.close();
        database.close();
    }

    @Test
    void everyOrderIsCreditedOnceHoweverOftenItIsPublished() {
        List<String> ids = Broker.ids("order-", 300);
        List<String> published = new ArrayList<>(ids);
        published.addAll(ids.subList(0, 100));
        published.addAll(ids.subList(50, 100));
        broker.create(3);
        broker.publish(published);

        try (Running running = Running.start(broker.options().build(), database.pool(6), Order::apply)) {
            await().until(() -> running.outcomes.size() == 450);
            broker.awaitNoBacklog();
            assertThat(running.count(Outcome.Applied.class)).isEqualTo(300);
            assertThat(running.count(Outcome.Duplicate.class)).isEqualTo(150);
            running.stop();
        }

        database.assertAppliedOnce(300);
        assertThat(broker.deadLetters()).isEmpty();
    }

    @Test
    void twoInstancesShareATopicAndCreditOnce() {
        broker.create(4);
        try (Running one = Running.start(broker.options().build(), database.pool(6), Order::apply);
                Running other = Running.start(broker.options().build(), database.pool(6), Order::apply)) {
            broker.awaitMembers(2);
            broker.publish(Broker.ids("order-", 200));
            broker.publish(Broker.ids("order-", 200));
            await().until(() -> one.outcomes.size() + other.outcomes.size() >= 400);
            broker.awaitNoBacklog();
            assertThat(one.outcomes).isNotEmpty();
            assertThat(other.outcomes).isNotEmpty();
            one.stop();
            other.stop();
        }
        database.assertAppliedOnce(200);
    }

    @Test
    void aDeadLetterKeepsKeyValueAndHeadersAndSaysWhy() {
        broker.create(1);
        ProducerRecord<byte[], byte[]> poison = broker.record("poison", "customer-7", "no order");
        poison.headers().add("tenant", "acme".getBytes(UTF_8));
        poison.headers().add("tenant", "other".getBytes(UTF_8));
        poison.headers().add("nothing", null);
        broker.publish(poison);

        try (Running running = Running.start(broker.options().build(), database.pool(6), (order, db) -> {
            throw new PermanentFailure("this customer is gone");
        })) {
            broker.awaitDeadLetters(1);
            broker.awaitNoBacklog();
            running.stop();
        }

        ConsumerRecord<byte[], byte[]> letter = broker.deadLetters().get(0);
        assertThat(letter.key()).isEqualTo("customer-7".getBytes(UTF_8));
        assertThat(letter.value()).isEqualTo("no order".getBytes(UTF_8));
        assertThat(letter.headers().headers("tenant"))
                .extracting(header -> new String(header.value(), UTF_8))
                .containsExactly("acme", "other");
        assertThat(letter.headers().headers("nothing")).hasSize(1).allMatch(header -> header.value() == null);
        assertThat(Broker.header(letter, "reason")).isEqualTo("this customer is gone");
        assertThat(Broker.header(letter, "kind")).isEqualTo("PERMANENT");
        assertThat(Broker.header(letter, "consumer")).isEqualTo("loyalty");
        assertThat(Broker.header(letter, "message-key")).isEqualTo("poison");
        assertThat(Broker.header(letter, "attempts")).isEqualTo("1");
        assertThat(Broker.header(letter, "topic")).isEqualTo(broker.topic());
        assertThat(Broker.header(letter, "partition")).isEqualTo("0");
        assertThat(Broker.header(letter, "offset")).isEqualTo("0");
        assertThat(Broker.header(letter, "timestamp")).isNotNull();
        assertThat(database.effects()).isZero();
        assertThat(database.claims()).isZero();
    }

    @Test
    void anEffectThatAlwaysFailsIsTriedThreeTimesAndTheNextMessagesAreHandled() {
        broker.create(1);
        broker.publish("bad", "good-1", "good-2");

        try (Running running = Running.start(
                broker.options().build(),
                database.pool(6),
                (order, db) -> order.id().equals("bad")
                        ? order.apply(db).then(Mono.error(new IllegalStateException("always")))
                        : order.apply(db))) {
            await().until(() -> running.outcomes.size() == 3);
            broker.awaitNoBacklog();
            running.stop();
        }

        List<ConsumerRecord<byte[], byte[]>> letters = broker.deadLetters();
        assertThat(letters).hasSize(1);
        assertThat(Broker.header(letters.get(0), "attempts")).isEqualTo("3");
        assertThat(Broker.header(letters.get(0), "reason")).contains("always");
        database.assertAppliedOnce(2);
    }
}
