package io.onceflux.rabbit;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.awaitility.Awaitility.await;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.GetResponse;
import io.onceflux.Database;
import io.onceflux.DeadLetter;
import io.onceflux.DeadLetters;
import io.onceflux.Effect;
import io.onceflux.FailureKind;
import io.onceflux.InvalidSetupException;
import io.onceflux.Order;
import io.onceflux.Outcome;
import io.onceflux.PermanentFailure;
import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;

class RabbitDeadLettersTest {

    private static final Duration LIMIT = Duration.ofSeconds(20);

    private final Database database = Database.create();
    private final Broker broker = Broker.create();
    private final DeadLetters letters = RabbitDeadLetters.of(broker.options().build());
    private final Set<String> refused = ConcurrentHashMap.newKeySet();
    private final Effect<Order> effect = (order, db) -> refused.contains(order.id())
            ? Mono.error(new PermanentFailure("no customer for " + order.id()))
            : order.apply(db);

    @AfterEach
    void close() {
        database.assertNothingLeaked();
        broker.close();
        database.close();
    }

    private Running running() {
        return Running.start(broker.options().build(), database.pool(6), effect);
    }

    private void giveUp(String... ids) {
        broker.declare();
        refused.addAll(List.of(ids));
        broker.publish(ids);
        try (Running running = running()) {
            broker.awaitDeadLetters(ids.length);
            running.stop();
        }
        refused.clear();
    }

    private List<DeadLetter> list() {
        return Objects.requireNonNull(letters.list().collectList().block(LIMIT));
    }

    @Test
    void whatIsListedSaysWhyAndStaysInItsPlace() {
        giveUp("1", "2", "3");

        for (int round = 0; round < 2; round++) {
            assertThat(list()).extracting(DeadLetter::messageKey).containsExactlyInAnyOrder("1", "2", "3");
            assertThat(list()).allSatisfy(letter -> {
                assertThat(letter.reason()).isEqualTo("no customer for " + letter.messageKey());
                assertThat(letter.kind()).isEqualTo(FailureKind.PERMANENT);
                assertThat(letter.consumer()).isEqualTo("loyalty");
                assertThat(letter.attempts()).isEqualTo(1);
                assertThat(letter.time()).isBeforeOrEqualTo(Instant.now());
                assertThat(new String(letter.body(), UTF_8)).isEqualTo(letter.messageKey());
            });
        }
        await().until(() -> broker.ready(broker.deadLetterQueue()) == 3);
    }

    @Test
    void whatIsChosenIsAppliedOnceAndTheRestStays() {
        giveUp("1", "2", "3");

        List<DeadLetter> replayed =
                Objects.requireNonNull(letters.replay(letter -> letter.reason().contains("for 2"), 100)
                        .collectList()
                        .block(LIMIT));
        assertThat(replayed).extracting(DeadLetter::messageKey).containsExactly("2");
        try (Running running = running()) {
            await().until(() -> database.effectsOf("2") == 1);
            broker.awaitNoBacklog();
            running.stop();
        }
        assertThat(list()).extracting(DeadLetter::messageKey).containsExactlyInAnyOrder("1", "3");
        database.assertAppliedOnce(1);
    }

    @Test
    void aMessageThatWasAppliedMeanwhileIsADuplicate() {
        giveUp("1");
        broker.publish("1");
        try (Running running = running()) {
            await().until(() -> database.effects() == 1);
            assertThat(letters.replay(letter -> true, 100).collectList().block(LIMIT))
                    .hasSize(1);
            await().until(() -> running.count(Outcome.Duplicate.class) == 1);
            broker.awaitNoBacklog();
            running.stop();
        }
        assertThat(list()).isEmpty();
        database.assertAppliedOnce(1);
    }

    @Test
    void whatFailsAgainAtOnceIsReplayedOnceAndTheReplayEnds() {
        giveUp("1", "2");
        refused.addAll(Set.of("1", "2"));
        try (Running running = running()) {
            assertThat(letters.replay(letter -> true, 5).collectList().block(LIMIT))
                    .hasSize(2);
            broker.awaitDeadLetters(2);
            assertThat(running.count(Outcome.Failed.class)).isEqualTo(2);
            running.stop();
        }
    }

    @Test
    void itComesBackAsItWasWithItsExpirationAndWithoutWhatSaidWhy() {
        broker.declare();
        Map<String, Object> headers = new HashMap<>(Map.of("trace", "a-b", "retries", 7L));
        BasicProperties original = Broker.properties("odd")
                .headers(headers)
                .contentType("application/json")
                .correlationId("c-1")
                .priority(3)
                .expiration("3600000")
                .build();
        byte[] body = {0, 1, 2, (byte) 0xFF};
        refused.add(new String(body, UTF_8));
        broker.publish(original, body);
        try (Running running = running()) {
            broker.awaitDeadLetters(1);
            running.stop();
        }
        assertThat(letters.replay(letter -> true, 100).collectList().block(LIMIT))
                .hasSize(1);

        GetResponse back = broker.take();
        assertThat(back.getBody()).isEqualTo(body);
        assertThat(back.getProps().getHeaders()).hasSize(2);
        assertThat(back.getProps().getHeaders().get("trace")).hasToString("a-b");
        assertThat(back.getProps().getHeaders().get("retries")).isEqualTo(7L);
        assertThat(back.getProps().getExpiration()).isEqualTo("3600000");
        assertThat(back.getProps().getContentType()).isEqualTo("application/json");
        assertThat(back.getProps().getCorrelationId()).isEqualTo("c-1");
        assertThat(back.getProps().getPriority()).isEqualTo(3);
        assertThat(back.getProps().getMessageId()).isEqualTo("odd");
    }

    @Test
    void aMessageThatTheBrokerGaveUpSaysSo() {
        broker.declare();
        broker.publish(Broker.properties("late").expiration("1").build(), "late".getBytes(UTF_8));
        broker.awaitDeadLetters(1);

        assertThat(list()).singleElement().satisfies(letter -> {
            assertThat(letter.reason()).isEqualTo("given up by the broker: expired");
            assertThat(letter.kind()).isNull();
            assertThat(letter.consumer()).isNull();
        });
    }

    @Test
    void withNoQueueToGoBackToNothingIsRemoved() {
        giveUp("1", "2");
        broker.delete(broker.queue());

        assertThat(catchThrowable(() -> letters.replay(letter -> true, 100).blockLast(LIMIT)))
                .hasRootCauseInstanceOf(IOException.class)
                .hasMessageContaining(
                        "no queue takes messages published to exchange '' with routing key '" + broker.queue());
        await().until(() -> broker.ready(broker.deadLetterQueue()) == 2);
        broker.declare();
    }

    @Test
    void cancellingPutsBackWhatWasLookedAt() {
        giveUp("1", "2", "3");
        assertThat(letters.list().take(1).collectList().block(LIMIT)).hasSize(1);
        await().until(() -> broker.ready(broker.deadLetterQueue()) == 3);
    }

    @Test
    void aReplayKeepsToItsRate() {
        giveUp("1", "2", "3", "4", "5");
        Duration took = Objects.requireNonNull(letters.replay(letter -> true, 10)
                .elapsed()
                .map(each -> Duration.ofMillis(each.getT1()))
                .reduce(Duration::plus)
                .block(LIMIT));
        assertThat(took).isGreaterThanOrEqualTo(Duration.ofMillis(450));
    }

    @Test
    void aQueueThatIsNotThereOrNotKnownIsNamed() {
        broker.declare();
        assertThatThrownBy(
                        () -> RabbitDeadLetters.in("nowhere", broker.options().build())
                                .list()
                                .blockLast(LIMIT))
                .hasMessageContaining("queue 'nowhere' does not exist at");
        assertThatThrownBy(() -> RabbitDeadLetters.of(
                        broker.options().deadLettersTo("dlx", "key").build()))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("RabbitDeadLetters.in(queue, options)");
        assertThatThrownBy(() -> letters.replay(letter -> true, 0))
                .hasMessageContaining("perSecond must be at least 1, but is 0");
    }
}
