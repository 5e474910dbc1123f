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

    /** A tool that lists and ends must not wait for a thread. */
    @Test
    void lookingLeavesNoThreadThatKeepsTheProcessAlive() {
        giveUp("1");
        Set<Thread> before = Thread.getAllStackTraces().keySet();

        list();

        assertThat(Thread.getAllStackTraces().keySet())
                .filteredOn(thread -> !thread.isDaemon() && !before.contains(thread))
                .isEmpty();
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
    void itComesBackAsItWasWithoutWhatSaidWhyAndWithItsExpirationInAHeader() {
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
        assertThat(back.getProps().getHeaders()).hasSize(3);
        assertThat(back.getProps().getHeaders().get("trace")).hasToString("a-b");
        assertThat(back.getProps().getHeaders().get("retries")).isEqualTo(7L);
        assertThat(back.getProps().getExpiration()).isNull();
        assertThat(Broker.header(back, "expiration")).isEqualTo("3600000");
        assertThat(back.getProps().getContentType()).isEqualTo("application/json");
        assertThat(back.getProps().getCorrelationId()).isEqualTo("c-1");
        assertThat(back.getProps().getPriority()).isEqualTo(3);
        assertThat(back.getProps().getMessageId()).isEqualTo("odd");
    }

    @Test
    void itsExpirationIsKeptThroughAnotherRound() {
        broker.declare();
        refused.add("1");
        broker.publish(Broker.properties("1").expiration("3600000").build(), "1".getBytes(UTF_8));
        for (int round = 0; round < 2; round++) {
            try (Running running = running()) {
                broker.awaitDeadLetters(1);
                running.stop();
            }
            assertThat(letters.replay(letter -> true, 100).collectList().block(LIMIT))
                    .hasSize(1);
        }
        GetResponse back = broker.take();
        assertThat(back.getProps().getExpiration()).isNull();
        assertThat(Broker.header(back, "expiration")).isEqualTo("3600000");
    }

    @Test
    void aMessageThatTheBrokerGaveUpGoesBackWhereItDiedWhateverItsSenderWrites() {
        broker.declare();
        try (Broker victim = Broker.create()) {
            victim.declare();
            Map<String, Object> forged = Map.of(
                    "x-onceflux-queue",
                    victim.queue(),
                    "x-onceflux-consumer",
                    "somebody",
                    "x-onceflux-reason",
                    "a lie",
                    "x-death",
                    List.of(Map.of("queue", victim.queue(), "reason", "rejected")),
                    "x-first-death-queue",
                    victim.queue(),
                    "x-first-death-reason",
                    "rejected");
            broker.publish(
                    Broker.properties("1").headers(forged).expiration("1").build(), "1".getBytes(UTF_8));
            broker.awaitDeadLetters(1);

            assertThat(list()).singleElement().satisfies(letter -> {
                assertThat(letter.consumer()).isNull();
                assertThat(letter.reason()).isEqualTo("given up by the broker: expired");
                assertThat(letter.time()).isNotNull();
            });
            assertThat(letters.replay(letter -> true, 100).collectList().block(LIMIT))
                    .hasSize(1);
            assertThat(broker.ready(broker.queue())).isOne();
            assertThat(victim.ready(victim.queue())).isZero();
        }
    }

    @Test
    void aMessageOfTheBrokersThatIsReplayedAndFailsIsOursAndKeepsWhatTheBrokerWrote() {
        broker.declare();
        broker.publish(Broker.properties("1").expiration("1").build(), "1".getBytes(UTF_8));
        broker.awaitDeadLetters(1);
        assertThat(letters.replay(letter -> true, 100).collectList().block(LIMIT))
                .hasSize(1);
        refused.add("1");
        try (Running running = running()) {
            broker.awaitDeadLetters(1);
            running.stop();
        }

        assertThat(list()).singleElement().satisfies(letter -> {
            assertThat(letter.consumer()).isEqualTo("loyalty");
            assertThat(letter.reason()).isEqualTo("no customer for 1");
        });
        assertThat(letters.replay(letter -> true, 100).collectList().block(LIMIT))
                .hasSize(1);
        assertThat(broker.take().getProps().getHeaders())
                .containsKey("x-death")
                .doesNotContainKeys("x-onceflux-x-death", "x-onceflux-queue", "x-onceflux-consumer");
    }

    @Test
    void whateverRoomItsHeadersLeaveAMessageGoesBackToItsQueueFromOneThatConsumersShare() {
        broker.declare();
        int[] rooms = {2_000, 700, 500, 400, 300, 200};
        try (Broker other = Broker.create()) {
            other.declare();
            for (int room : rooms) {
                Map<String, Object> headers = new HashMap<>();
                headers.put("x-onceflux-queue", "nowhere");
                headers.put("padding", "x".repeat(131_072 - room));
                other.publish(Broker.properties("b" + room).headers(headers).build(), ("b" + room).getBytes(UTF_8));
                refused.add("b" + room);
            }
            RabbitOptions shared =
                    other.options().deadLettersTo("", broker.deadLetterQueue()).build();
            try (Running running = Running.start(shared, database.pool(6), effect)) {
                broker.awaitDeadLetters(rooms.length);
                running.stop();
            }

            assertThat(letters.replay(letter -> true, 100).collectList().block(LIMIT))
                    .hasSize(rooms.length);
            assertThat(other.ready(other.queue())).isEqualTo(rooms.length);
            assertThat(broker.ready(broker.queue())).isZero();
        }
    }

    @Test
    void lookingAtADeclaredQuorumQueueCostsNoLetter() {
        broker.declare(QueueDeclaration.quorum(3));
        refused.addAll(Set.of("1", "2"));
        broker.publish("1", "2");
        try (Running running = Running.start(
                broker.options().declare(QueueDeclaration.quorum(3)).build(), database.pool(6), effect)) {
            broker.awaitDeadLetters(2);
            running.stop();
        }
        for (int look = 0; look < 25; look++) {
            await().until(() -> broker.ready(broker.deadLetterQueue()) == 2);
            assertThat(list()).extracting(DeadLetter::messageKey).containsExactlyInAnyOrder("1", "2");
        }
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
