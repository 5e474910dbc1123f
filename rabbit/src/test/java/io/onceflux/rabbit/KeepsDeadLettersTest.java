package io.onceflux.rabbit;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;
import static org.awaitility.Awaitility.await;

import com.rabbitmq.client.AMQP.BasicProperties;
import io.onceflux.Database;
import io.onceflux.DeadLetter;
import io.onceflux.Order;
import io.onceflux.PermanentFailure;
import io.onceflux.postgres.DeadLetterTable;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;

/** A consumer that keeps dead letters in a table needs nothing at the broker but its queue. */
class KeepsDeadLettersTest {

    private static final Duration LIMIT = Duration.ofSeconds(20);

    private final Database database = Database.create();
    private final Broker broker = Broker.create();
    private final DeadLetterTable table = DeadLetterTable.deadLetters();

    @AfterEach
    void close() {
        database.assertNothingLeaked();
        broker.delete(broker.queue());
        database.close();
    }

    private Running running(RabbitOptions options) {
        return Running.start(
                options,
                database.pool(6),
                (order, db) ->
                        order.id().equals("bad") ? Mono.error(new PermanentFailure("not this one")) : order.apply(db),
                builder -> builder.deadLetterTable(table));
    }

    private static List<DeadLetter> list(Running running) {
        return Objects.requireNonNull(running.consumer
                .deadLetters(body -> Order.of(new String(body, UTF_8)))
                .list()
                .collectList()
                .block(LIMIT));
    }

    @Test
    void itNeedsNeitherAQueueForThemNorTheRightToPublishThem() {
        database.run(table.createSql());
        broker.declareWithoutDeadLetters();
        String reader = broker.user("", "", ".*");
        RabbitOptions options =
                broker.options().connectionFactory(broker.as(reader)).build();
        try (Running running = running(options)) {
            broker.publish("1", "bad");
            broker.publish(new BasicProperties.Builder().build(), "without an id".getBytes(UTF_8));
            await().atMost(LIMIT).until(() -> running.outcomes.size() == 3);
            broker.awaitNoBacklog();

            assertThat(list(running))
                    .extracting(letter -> new String(letter.body(), UTF_8), DeadLetter::reason)
                    .containsExactlyInAnyOrder(
                            tuple("bad", "not this one"), tuple("without an id", "the message has no id"));
            assertThat(running.error.get()).isNull();
            running.stop();
        }
        database.assertAppliedOnce(1);
    }

    @Test
    void itNeedsNoExchangeForThemEither() {
        database.run(table.createSql());
        broker.declareWithoutDeadLetters();
        try (Running running =
                running(broker.options().deadLettersTo("no-exchange", "key").build())) {
            broker.publish("bad");
            await().atMost(LIMIT).until(() -> list(running).size() == 1);
            broker.awaitNoBacklog();
            running.stop();
        }
    }

    @Test
    void whatCannotBeDecodedIsInTheTable() {
        database.run(table.createSql());
        broker.declareWithoutDeadLetters();
        broker.publish("junk");
        try (Running running = Running.start(
                broker.options().build(),
                database.pool(6),
                Order::apply,
                builder -> builder.deadLetterTable(table).identifiedBy(order -> {
                    throw new IllegalArgumentException("no order");
                }))) {
            await().atMost(LIMIT).until(() -> list(running).size() == 1);
            assertThat(list(running)).singleElement().satisfies(letter -> {
                assertThat(new String(letter.body(), UTF_8)).isEqualTo("junk");
                assertThat(letter.messageKey()).isNull();
            });
            broker.awaitNoBacklog();
            running.stop();
        }
    }
}
