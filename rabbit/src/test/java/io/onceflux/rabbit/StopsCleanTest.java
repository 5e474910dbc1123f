package io.onceflux.rabbit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.Database;
import io.onceflux.Order;
import io.onceflux.Outcome;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/** What stopping does to messages that are under way, queued, and still at the broker. */
class StopsCleanTest {

    private final Database database = Database.create();
    private final Broker broker = Broker.create();
    private final AtomicInteger underWay = new AtomicInteger();
    private final Sinks.Empty<Void> go = Sinks.empty();

    @AfterEach
    void close() {
        database.assertNothingLeaked();
        broker.close();
        database.close();
    }

    private Mono<Void> applyWhenAllowed(Order order, org.springframework.r2dbc.core.DatabaseClient db) {
        return Mono.defer(() -> {
                    underWay.incrementAndGet();
                    return go.asMono();
                })
                .then(order.apply(db));
    }

    private static List<String> ids(int count) {
        return IntStream.range(0, count).mapToObj(i -> "order-" + i).toList();
    }

    @Test
    void transactionsUnderWayCommitAndAreAcknowledgedAndTheRestIsRedeliveredOnce() {
        broker.declare();
        broker.publish(ids(100));
        Running stopping = Running.start(
                broker.options().build(), database.pool(21), this::applyWhenAllowed, builder -> builder.lanes(20));
        await().until(() -> underWay.get() >= 15);
        int committing = underWay.get();

        Mono<Void> stop = stopping.consumer.stop().cache();
        var stopSubscription = stop.subscribe();
        await("the broker is asked for no more at once").until(() -> broker.consumers() == 0);
        go.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);
        stop.block(Duration.ofSeconds(30));
        assertThat(stopSubscription.isDisposed()).isTrue();

        assertThat(stopping.hasCompleted()).as("the flux of outcomes completed").isTrue();
        assertThat(stopping.error.get()).isNull();
        long applied = stopping.count(Outcome.Applied.class);
        assertThat(applied).isBetween((long) committing, 20L);
        assertThat(database.effects()).isEqualTo(applied);
        await().until(() -> broker.ready(broker.queue()) == 100 - applied);
        assertThat(stopping.listener.settleFailures)
                .as("every ack was written before the channel closed")
                .isEmpty();

        try (Running next = Running.start(broker.options().build(), database.pool(6), Order::apply)) {
            await().until(() -> next.outcomes.size() == 100 - applied);
            broker.awaitNoBacklog();
            assertThat(next.count(Outcome.Duplicate.class))
                    .as("nothing that was acknowledged came again")
                    .isZero();
            next.stop();
        }
        database.assertAppliedOnce(100);
    }

    @Test
    void whatDoesNotEndWithinTheLimitIsRolledBackAndRedelivered() {
        broker.declare();
        broker.publish(ids(40)); // Enough for every lane to have one.
        Running stopping = Running.start(
                broker.options().build(),
                database.pool(5),
                (order, db) -> order.apply(db).then(Mono.never()));
        await().until(() -> database.openTransactions() == 4);

        stopping.consumer.stop(Duration.ofMillis(300)).block(Duration.ofSeconds(10));

        assertThat(stopping.hasCompleted()).isTrue();
        await().until(() -> broker.ready(broker.queue()) == 40);
        assertThat(database.effects()).isZero();
        database.assertNothingLeaked();
        try (Running next = Running.start(broker.options().build(), database.pool(6), Order::apply)) {
            await().until(() -> next.count(Outcome.Applied.class) == 40);
            broker.awaitNoBacklog();
            next.stop();
        }
        database.assertAppliedOnce(40);
    }

    @Test
    void stoppingLeavesNoWarningOfTheReceiverInTheLog() {
        broker.declare();
        broker.publish("order-1");
        PrintStream stderr = System.err; // Where the logger writes.
        ByteArrayOutputStream log = new ByteArrayOutputStream();
        System.setErr(new PrintStream(log, true, StandardCharsets.UTF_8));
        try {
            Running stopping = Running.start(broker.options().build(), database.pool(6), this::applyWhenAllowed);
            await().until(() -> underWay.get() == 1);
            Mono<Void> stop = stopping.consumer.stop().cache();
            var stopSubscription = stop.subscribe();
            await("the consumer is cancelled").until(() -> broker.consumers() == 0);
            go.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);
            stop.block(Duration.ofSeconds(30));
            await().until(stopSubscription::isDisposed);
            await("the source is closed").until(() -> threadsOfTheSource() == 0);
        } finally {
            System.setErr(stderr);
        }
        assertThat(log.toString(StandardCharsets.UTF_8)).doesNotContain("reactor.rabbitmq", "com.rabbitmq");
    }

    private long threadsOfTheSource() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().equals("onceflux-rabbit-" + broker.queue()))
                .count();
    }

    @Test
    void aStoppedConsumerDoesNotSubscribeAgain() {
        broker.declare();
        Running running = Running.start(broker.options().build(), database.pool(5), Order::apply);
        running.stop();
        broker.publish("order-1");
        assertThat(running.consumer
                        .apply(RabbitDeliveries.from(broker.options().build())
                                .map(delivery -> delivery.map(body -> Order.of("x"))))
                        .collectList()
                        .block(Duration.ofSeconds(10)))
                .isEmpty();
        assertThat(broker.ready(broker.queue())).isEqualTo(1);
    }
}
