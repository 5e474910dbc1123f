package io.onceflux.rabbit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.rabbitmq.client.GetResponse;
import io.onceflux.Database;
import io.onceflux.Order;
import io.onceflux.Outcome;
import io.onceflux.PermanentFailure;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;

/** From the queue to the ledger: success, duplicate, failure, poison. */
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
        List<String> ids = IntStream.range(0, 300).mapToObj(i -> "order-" + i).toList();
        List<String> published = new ArrayList<>(ids);
        published.addAll(ids.subList(0, 100));
        published.addAll(ids.subList(50, 100));
        broker.declare();
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
    void twoInstancesShareAQueueAndCreditOnce() {
        List<String> published = IntStream.range(0, 200)
                .mapToObj(i -> "order-" + i)
                .flatMap(id -> List.of(id, id).stream())
                .toList();
        broker.declare();
        try (Running one = Running.start(broker.options().prefetch(1).build(), database.pool(6), Order::apply);
                Running other = Running.start(broker.options().prefetch(1).build(), database.pool(6), Order::apply)) {
            broker.publish(published);
            await().until(() -> one.outcomes.size() + other.outcomes.size() == 400);
            broker.awaitNoBacklog();
            assertThat(one.outcomes).isNotEmpty();
            assertThat(other.outcomes).isNotEmpty();
            one.stop();
            other.stop();
        }
        database.assertAppliedOnce(200);
    }

    @Test
    void aDeadLetterKeepsBodyHeadersAndPropertiesAndSaysWhy() {
        broker.declare();
        Map<String, Object> headers = new HashMap<>();
        headers.put("tenant", "acme");
        headers.put("nothing", null);
        headers.put("x-death", "abc");
        byte[] body = "no order".getBytes(StandardCharsets.UTF_8);
        Date sent = Date.from(Instant.ofEpochSecond(1_700_000_000));
        broker.publish(
                Broker.properties("poison")
                        .headers(headers)
                        .contentType("text/plain")
                        .timestamp(sent)
                        .correlationId("c-1")
                        .priority(3)
                        .expiration("600000")
                        .userId("guest")
                        .build(),
                body);

        try (Running running = Running.start(broker.options().build(), database.pool(6), (order, db) -> {
            throw new PermanentFailure("this customer is gone");
        })) {
            broker.awaitDeadLetters(1);
            broker.awaitNoBacklog();
            running.stop();
        }

        GetResponse letter = broker.deadLetters().get(0);
        assertThat(letter.getBody()).isEqualTo(body);
        assertThat(letter.getProps().getMessageId()).isEqualTo("poison");
        assertThat(letter.getProps().getContentType()).isEqualTo("text/plain");
        assertThat(letter.getProps().getTimestamp()).isEqualTo(sent);
        assertThat(letter.getProps().getCorrelationId()).isEqualTo("c-1");
        assertThat(letter.getProps().getPriority()).isEqualTo(3);
        assertThat(letter.getProps().getExpiration()).as("it must not expire").isNull();
        assertThat(letter.getProps().getHeaders()).containsKey("nothing");
        assertThat(String.valueOf(letter.getProps().getHeaders().get("tenant"))).isEqualTo("acme");
        assertThat(letter.getProps().getHeaders())
                .as("the broker has not given it up")
                .doesNotContainKey("x-death");
        assertThat(Broker.header(letter, "x-death")).isEqualTo("abc");
        assertThat(Broker.header(letter, "reason")).isEqualTo("this customer is gone");
        assertThat(Broker.header(letter, "kind")).isEqualTo("PERMANENT");
        assertThat(Broker.header(letter, "consumer")).isEqualTo("loyalty");
        assertThat(Broker.header(letter, "message-key")).isEqualTo("poison");
        assertThat(Broker.header(letter, "attempts")).isEqualTo("1");
        assertThat(Broker.header(letter, "routing-key")).isEqualTo(broker.queue());
        assertThat(Broker.header(letter, "expiration")).isEqualTo("600000");
        assertThat(Broker.header(letter, "user-id")).isEqualTo("guest");
        assertThat(database.effects()).isZero();
        assertThat(database.claims()).isZero();
    }

    @Test
    void anEffectThatAlwaysFailsIsTriedThreeTimesAndTheNextMessagesAreHandled() {
        broker.declare();
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

        List<GetResponse> letters = broker.deadLetters();
        assertThat(letters).hasSize(1);
        assertThat(Broker.header(letters.get(0), "attempts")).isEqualTo("3");
        assertThat(Broker.header(letters.get(0), "reason")).contains("always");
        database.assertAppliedOnce(2);
    }
}
