package io.onceflux.rabbit;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.rabbitmq.client.ConnectionFactory;
import io.onceflux.Database;
import io.onceflux.DeadLetter;
import io.onceflux.Effect;
import io.onceflux.Health;
import io.onceflux.Order;
import io.onceflux.RecordingListener.Lost;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What the client cannot read ends the connection, whenever it is sent. */
class UnreadableMessagesTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final int MIB = 1024 * 1024;
    private static final String WORDS = "Too many levels of nested tables";

    private final Database database = Database.create();
    private final Broker broker = Broker.create();

    @AfterEach
    void close() {
        database.assertNothingLeaked();
        broker.close();
        database.close();
    }

    private static List<String> ids(String prefix, int count) {
        return IntStream.range(0, count).mapToObj(i -> prefix + i).toList();
    }

    /** Headers in headers, deeper than the client reads; it writes them. */
    private void publishUnreadable() {
        Map<String, Object> headers = new HashMap<>();
        for (int depth = 0; depth < 40; depth++) {
            headers = new HashMap<>(Map.of("deeper", headers));
        }
        broker.publish(Broker.properties("bad").headers(headers).build(), "bad".getBytes(UTF_8));
    }

    private Running running(RabbitOptions options, Effect<Order> effect) {
        return Running.start(options, database.pool(6), effect, builder -> builder.downAfter(Duration.ofSeconds(2)));
    }

    @Test
    void aMessageOverTheClientsOwnLimitIsApplied() {
        broker.declare();
        broker.publish(Broker.properties("order-1").build(), new byte[65 * MIB]);
        List<Integer> sizes = new CopyOnWriteArrayList<>();
        try (Running running = running(broker.options().build(), (order, db) -> {
            sizes.add(order.id().length());
            return Order.of("order-1").apply(db);
        })) {
            await().atMost(LIMIT).until(() -> running.outcomes.size() == 1);
            broker.awaitNoBacklog();
            assertThat(running.listener.lost).isEmpty();
            running.stop();
        }
        assertThat(sizes).containsExactly(65 * MIB);
        database.assertAppliedOnce(1);
    }

    @Test
    void aLimitThatTheUserHasSetStaysAndItsWordsAreTold() {
        broker.declare();
        ConnectionFactory smaller = broker.factory();
        smaller.setMaxInboundMessageBodySize(1_000);
        broker.publish(Broker.properties("bad").build(), new byte[1_001]);
        try (Running running =
                running(broker.options().connectionFactory(smaller).build(), Order::apply)) {
            await().until(() -> running.listener.lost.size() >= 3);
            assertThat(running.listener.lost)
                    .extracting(Lost::reason)
                    .allMatch(reason ->
                            reason.contains("Message body is too large (1001), maximum configured size is 1000"));
            running.stop();
        }
    }

    @Test
    void inAClassicQueueThoseBeforeItAreAppliedAndHealthIsDownUntilItIsRemoved() {
        broker.declare();
        broker.publish(ids("before-", 50));
        publishUnreadable();
        broker.publish(ids("behind-", 20));
        try (Running running = running(broker.options().build(), Order::apply)) {
            await().atMost(LIMIT).until(() -> database.effects() == 50);
            List<Lost> lost = running.listener.lost;
            await().atMost(LIMIT)
                    .until(() -> lost.get(lost.size() - 1).untilNextTry().compareTo(Duration.ofMillis(250)) >= 0);
            assertThat(lost.get(lost.size() - 1).reason()).contains(WORDS);
            await().atMost(LIMIT).until(() -> running.consumer.health().status() == Health.Status.DOWN);
            int losses = lost.size();
            List<Health> seen = new ArrayList<>();
            await().atMost(LIMIT).until(() -> {
                seen.add(running.consumer.health());
                return lost.size() >= losses + 4;
            });
            assertThat(seen).allSatisfy(health -> {
                assertThat(health.status()).isEqualTo(Health.Status.DOWN);
                assertThat(health.troubles())
                        .singleElement()
                        .satisfies(trouble -> assertThat(trouble.reason()).contains(WORDS));
            });

            broker.purge();
            broker.publish("canary");
            await().atMost(LIMIT).until(() -> database.effectsOf("canary") == 1);
            await().atMost(LIMIT).until(() -> running.consumer.health().status() == Health.Status.UP);
            running.stop();
        }
        database.assertAppliedOnce(51);
    }

    @Test
    void aQuorumQueueGivesUpItAloneAndThenMessagesAreSentTogetherAgain() {
        broker.declare(QueueDeclaration.quorum(3));
        broker.publish(ids("before-", 10));
        publishUnreadable();
        broker.publish(ids("behind-", 20));
        try (Running running = running(broker.options().prefetch(25).build(), Order::apply)) {
            await().atMost(LIMIT).until(() -> database.effects() == 30);
            broker.awaitDeadLetters(1);
            await().atMost(LIMIT).until(() -> running.consumer.health().status() == Health.Status.UP);

            broker.publish(ids("later-", 20));
            await().atMost(LIMIT)
                    .until(() -> running.listener.lost.stream()
                            .anyMatch(lost -> lost.reason().contains("one by one no more")));
            broker.publish("canary");
            await().atMost(LIMIT).until(() -> database.effects() == 51);
            broker.awaitNoBacklog();
            await().atMost(LIMIT).until(() -> running.consumer.health().status() == Health.Status.UP);
            running.stop();
        }
        database.assertAppliedOnce(51);
        assertThat(broker.ready(broker.deadLetterQueue())).isOne();
    }

    @Test
    void amongDeadLettersItEndsALookWithWhatTheClientSays() {
        broker.declare();
        try (Broker consumed = Broker.create()) {
            consumed.declare();
            RabbitOptions options =
                    consumed.options().deadLettersTo("", broker.queue()).build();
            broker.publish("0");
            publishUnreadable();
            List<DeadLetter> seen = new CopyOnWriteArrayList<>();
            assertThatThrownBy(() -> RabbitDeadLetters.of(options)
                            .list()
                            .doOnNext(seen::add)
                            .blockLast(LIMIT))
                    .hasCauseInstanceOf(IOException.class)
                    .hasMessageContainingAll("queue '" + broker.queue() + "' at ", "could not be read", WORDS);
            assertThat(seen).hasSize(1);
            assertThatThrownBy(() -> RabbitDeadLetters.of(options)
                            .replay(letter -> false, 100)
                            .blockLast(LIMIT))
                    .hasMessageContainingAll("queue '" + broker.queue() + "' at ", "could not be read", WORDS);
        }
    }
}
