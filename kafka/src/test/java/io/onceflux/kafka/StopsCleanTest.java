package io.onceflux.kafka;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.Database;
import io.onceflux.Order;
import io.onceflux.Outcome;
import io.onceflux.services.ForkedJvm;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collections;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/** What stopping and crashing do to messages that are under way, queued, and still at the broker. */
class StopsCleanTest {

    private static final int IN_FLIGHT = 32;
    private static final int POLLED = 8;

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

    private Mono<Void> applyWhenAllowed(Order order, DatabaseClient db) {
        return Mono.defer(() -> {
                    underWay.incrementAndGet();
                    return go.asMono();
                })
                .then(order.apply(db));
    }

    @Test
    void whatDoesNotEndWithinTheLimitIsRolledBackAndRedelivered() {
        broker.create(2);
        broker.publish(Broker.ids("order-", 40));
        Running stopping = Running.start(
                broker.options().build(),
                database.pool(5),
                (order, db) -> order.apply(db).then(Mono.never()));
        await().until(() -> database.openTransactions() == 4);

        stopping.consumer.stop(Duration.ofMillis(300)).block(Duration.ofSeconds(20));

        assertThat(stopping.hasCompleted()).isTrue();
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
    void stoppedTenTimesUnderLoadNoMoreComesAgainThanMayBeDeferred() {
        broker.create(3);
        AtomicInteger published = new AtomicInteger();
        long duplicates = 0;
        for (int round = 0; round < 10; round++) {
            long before = database.effects();
            if (published.get() - before < 1_000) { // A fast machine does several hundred before it is stopped.
                broker.publish(Broker.ids("round-" + round + "-", 1_000));
                published.addAndGet(1_000);
            }
            Running running = Running.start(
                    broker.options()
                            .maxDeferredCommits(IN_FLIGHT)
                            .property("max.poll.records", POLLED)
                            .build(),
                    database.pool(6),
                    (order, db) -> Mono.delay(Duration.ofMillis(1)).then(order.note(db)),
                    builder -> builder.maxInFlight(IN_FLIGHT));
            await().until(() -> database.effects() > before + 100);
            running.stop();
            assertThat(running.error.get()).isNull();
            assertThat(running.listener.settleFailures).isEmpty();
            assertThat(running.count(Outcome.Duplicate.class))
                    .as("what was done behind a message that had not begun, in each partition")
                    .isLessThanOrEqualTo(3L * (IN_FLIGHT + 3 * POLLED));
            duplicates += running.count(Outcome.Duplicate.class);
        }
        try (Running last = Running.start(broker.options().build(), database.pool(6), Order::note)) {
            await().until(() -> database.effects() == published.get());
            broker.awaitNoBacklog();
            last.stop();
        }
        database.assertAppliedOnce(published.get());
        System.out.println("K6: " + duplicates + " duplicates in ten stops");
    }

    @Test
    void aServiceThatGetsSigtermTenTimesUnderLoadHasNoMoreAgainThanWasInFlight() {
        broker.create(3);
        int published = 0;
        long duplicates = 0;
        for (int round = 0; round < 10; round++) {
            long before = database.effects();
            if (published - before < 1_000) {
                broker.publish(Broker.ids("round-" + round + "-", 1_000));
                published += 1_000;
            }
            try (ForkedJvm service = start(SlowService.class)) {
                await().until(() -> database.effects() > before + 50);
                service.terminate();
                assertThat(service.exitCode()).isEqualTo(143);
                long its = service.lines().stream()
                        .filter(SlowService.DUPLICATE::equals)
                        .count();
                assertThat(its).as("maxInFlight of the one before").isLessThanOrEqualTo(256);
                duplicates += its;
            }
            assertThat(broker.members()).as("it has left the group").isEmpty();
            assertThat(broker.lag()).as("it has committed").isLessThanOrEqualTo(published - database.effects() + 256);
        }
        long all = published;
        try (Running last = Running.start(broker.options().build(), database.pool(6), Order::note)) {
            await().until(() -> database.effects() == all);
            broker.awaitNoBacklog();
            assertThat(last.count(Outcome.Duplicate.class)).isLessThanOrEqualTo(256);
            last.stop();
        }
        database.assertAppliedOnce(all);
        System.out.println("K6: " + duplicates + " duplicates after ten times SIGTERM");
    }

    @Test
    void aProcessKilledBetweenFiftyCommitsAndTheirAcknowledgementsLeavesFiftyEffectsAndDuplicates() {
        kill(CrashingService.Moment.COMMITTED, 50);
        database.assertAppliedOnce(50);
        assertThat(broker.lag()).isEqualTo(50);

        try (Running running = Running.start(broker.options().build(), database.pool(6), Order::apply)) {
            await().until(() -> running.outcomes.size() == 50);
            broker.awaitNoBacklog();
            assertThat(running.count(Outcome.Duplicate.class)).isEqualTo(50);
            running.stop();
        }
        database.assertAppliedOnce(50);
    }

    @Test
    void aProcessKilledBetweenEffectAndCommitLeavesNothingAndTheRedeliveryApplies() {
        kill(CrashingService.Moment.EFFECT_WRITTEN, 1);
        assertThat(database.effects()).as("rolled back by the kill").isZero();

        try (Running running = Running.start(broker.options().build(), database.pool(6), Order::apply)) {
            await().until(() -> running.outcomes.size() == 1);
            broker.awaitNoBacklog();
            assertThat(running.count(Outcome.Applied.class)).isEqualTo(1);
            running.stop();
        }
        database.assertAppliedOnce(1);
    }

    private void kill(CrashingService.Moment moment, int messages) {
        broker.create(2);
        broker.publish(Broker.ids("order-", messages));
        try (ForkedJvm service = start(CrashingService.class, moment.name())) {
            await().until(() -> Collections.frequency(service.lines(), moment.name()) == messages);
            service.kill();
        }
    }

    private ForkedJvm start(Class<?> main, String... more) {
        String[] args = {broker.bootstrap(), broker.topic(), broker.group(), database.r2dbcUrl()};
        String[] all = java.util.Arrays.copyOf(args, args.length + more.length);
        System.arraycopy(more, 0, all, args.length, more.length);
        return ForkedJvm.start(main, all);
    }

    @Test
    void stoppingUnderLoadLeavesNoErrorOfTheReceiverInTheLog() {
        broker.create(2);
        broker.publish(Broker.ids("order-", 30));
        PrintStream stderr = System.err; // Where the logger writes.
        ByteArrayOutputStream log = new ByteArrayOutputStream();
        System.setErr(new PrintStream(log, true, StandardCharsets.UTF_8));
        try {
            Running stopping = Running.start(broker.options().build(), database.pool(6), this::applyWhenAllowed);
            await().until(() -> underWay.get() == 4);
            Mono<Void> stop = stopping.consumer.stop().cache();
            var stopSubscription = stop.subscribe();
            go.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);
            stop.block(Duration.ofSeconds(30));
            await().until(stopSubscription::isDisposed);
            await("the source is closed")
                    .until(() -> Thread.getAllStackTraces().keySet().stream()
                            .noneMatch(thread -> thread.getName().contains(broker.group())));
        } finally {
            System.setErr(stderr);
        }
        assertThat(log.toString(StandardCharsets.UTF_8)).doesNotContain("reactor.kafka", "onErrorDropped", "Exception");
    }

    @Test
    void aStoppedConsumerDoesNotSubscribeAgain() {
        broker.create(1);
        Running running = Running.start(broker.options().build(), database.pool(5), Order::apply);
        running.stop();
        broker.publish("order-1");
        assertThat(running.consumer
                        .apply(KafkaDeliveries.from(broker.options().build())
                                .map(delivery -> delivery.map(body -> Order.of("x"))))
                        .collectList()
                        .block(Duration.ofSeconds(10)))
                .isEmpty();
        assertThat(broker.lag()).isEqualTo(1);
    }
}
