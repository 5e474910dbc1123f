package io.onceflux.rabbit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.Database;
import io.onceflux.Effect;
import io.onceflux.Health;
import io.onceflux.Order;
import io.onceflux.PermanentFailure;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** A dead letter that cannot be stored keeps its original in the queue, and holds up no other lane. */
class DeadLetterFailuresTest {

    private static final Effect<Order> REFUSES_BAD = (order, db) -> {
        if (order.id().equals("bad")) {
            throw new PermanentFailure("bad");
        }
        return order.apply(db);
    };

    private final Database database = Database.create();
    private final Broker broker = Broker.create();

    @AfterEach
    void close() {
        database.assertNothingLeaked();
        broker.close();
        database.close();
    }

    @Test
    void withNowhereToPutItTheMessageIsNotAcknowledgedUntilThereIs() {
        broker.declare();
        try (Running running = Running.start(broker.options().build(), database.pool(6), REFUSES_BAD)) {
            await().until(() -> broker.consumers() == 1);
            broker.delete(broker.deadLetterQueue());
            broker.publish("bad", "good");

            await().until(() -> running.listener.settleFailures.size() >= 2);
            assertThat(running.listener.settleFailures.get(0))
                    .hasMessageContaining("no queue takes messages published to exchange");
            await().until(() -> database.effectsOf("good") == 1);
            assertThat(broker.backlog())
                    .as("the original is still the broker's")
                    .isEqualTo(1);

            broker.declare();
            broker.awaitDeadLetters(1);
            broker.awaitNoBacklog();
            running.stop();
        }
        assertThat(broker.deadLetters()).hasSize(1);
    }

    @Test
    void withoutItsExchangeTheMessageIsNotAcknowledgedUntilItIsThereAgain() {
        broker.declare();
        String exchange = broker.exchangeOfDeadLetters();
        RabbitOptions options =
                broker.options().deadLettersTo(exchange, "given up").build();
        try (Running running = Running.start(options, database.pool(6), REFUSES_BAD)) {
            await().until(() -> broker.consumers() == 1);
            broker.deleteExchange(exchange);
            broker.publish("bad", "good");

            await().until(() -> running.listener.settleFailures.size() >= 2);
            await().until(() -> database.effectsOf("good") == 1);
            assertThat(running.consumer.health().troubles())
                    .extracting(Health.Trouble::what)
                    .containsExactly("dead letters");
            await("the original stays the broker's, and only that").until(() -> broker.unacknowledged() == 1);
            assertThat(broker.ready(broker.deadLetterQueue())).isZero();

            broker.exchangeOfDeadLetters();
            broker.awaitDeadLetters(1);
            broker.awaitNoBacklog();
            assertThat(running.listener.lost)
                    .as("the consumer's own channel is not touched")
                    .isEmpty();
            assertThat(running.consumer.health().status()).isEqualTo(Health.Status.UP);
            running.stop();
            broker.deleteExchange(exchange);
        }
        assertThat(broker.deadLetters())
                .singleElement()
                .satisfies(letter ->
                        assertThat(letter.getEnvelope().getRoutingKey()).isEqualTo("given up"));
        database.assertAppliedOnce(1);
    }

    @Test
    void withoutTheRightToPublishItTheMessageIsNotAcknowledgedUntilTheRightIsBack() {
        broker.declare();
        String user = broker.user("", "amq\\.default", ".*");
        try (Running running = Running.start(
                broker.options().connectionFactory(broker.as(user)).build(), database.pool(6), REFUSES_BAD)) {
            await().until(() -> broker.consumers() == 1);
            broker.grant(user, "", "", ".*");
            broker.publish("bad", "good");

            await().until(() -> running.listener.settleFailures.size() >= 2);
            await().until(() -> database.effectsOf("good") == 1);
            await("the original stays the broker's, and only that").until(() -> broker.unacknowledged() == 1);
            assertThat(broker.backlog()).isEqualTo(1);
            assertThat(broker.ready(broker.deadLetterQueue())).isZero();

            broker.grant(user, "", "amq\\.default", ".*");
            broker.awaitDeadLetters(1);
            broker.awaitNoBacklog();
            running.stop();
        }
        assertThat(broker.deadLetters()).hasSize(1);
        assertThat(database.effects()).isEqualTo(1);
    }
}
