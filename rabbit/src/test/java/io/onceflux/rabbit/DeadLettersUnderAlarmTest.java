package io.onceflux.rabbit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.rabbitmq.client.ConnectionFactory;
import io.onceflux.Database;
import io.onceflux.Effect;
import io.onceflux.Order;
import io.onceflux.PermanentFailure;
import io.onceflux.services.RabbitService;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;
import reactor.core.scheduler.Schedulers;

/** A broker that is short of memory reads nothing from connections that publish: dead letters wait, and nothing else does. */
class DeadLettersUnderAlarmTest {

    /** More than the threads that may block, where that many connections to the database can be had. */
    private static final int LANES = Math.min(Schedulers.DEFAULT_BOUNDED_ELASTIC_SIZE + 20, 80);

    private static RabbitService service;

    private final Database database = Database.create();
    private final AtomicInteger underWay = new AtomicInteger();
    private final Sinks.Empty<Void> go = Sinks.empty();
    private Broker broker;

    @BeforeAll
    static void startBroker() {
        service = RabbitService.start(Map.of("tcp_listen_options.recbuf", "4096"));
    }

    @AfterAll
    static void stopBroker() {
        service.close();
    }

    @BeforeEach
    void declare() {
        broker = Broker.on(service);
        broker.declare();
    }

    @AfterEach
    void close() {
        endAlarm();
        database.assertNothingLeaked();
        broker.close();
        database.close();
    }

    private static void alarm() {
        service.ctl("set_vm_memory_high_watermark", "absolute", "1MB");
    }

    private static void endAlarm() {
        service.ctl("set_vm_memory_high_watermark", "absolute", "512MB");
    }

    private static List<String> bad(int count) {
        return IntStream.range(0, count).mapToObj(i -> "bad-" + i).toList();
    }

    private Effect<Order> refusingWhenAllowed() {
        return (order, db) -> Mono.defer(() -> {
                    underWay.incrementAndGet();
                    return go.asMono();
                })
                .then(
                        order.id().startsWith("bad")
                                ? Mono.error(new PermanentFailure("bad"))
                                : order.apply(db).then());
    }

    /** A consumer that holds all of these messages when the alarm comes, and then refuses them. */
    private Running refusing(int messages, Duration confirmLimit, Duration settleLimit) {
        broker.publish(bad(messages));
        Running running = Running.start(
                broker.options().confirmLimit(confirmLimit).build(),
                database.pool(LANES + 1),
                refusingWhenAllowed(),
                builder -> builder.lanes(LANES).settleLimit(settleLimit).orderedBy(Order::id));
        await().until(() -> underWay.get() >= LANES / 2);
        alarm();
        go.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);
        return running;
    }

    @Test
    void eachIsPublishedOnceHoweverOftenItsSettlementIsTriedAgainAndTheUsersThreadsAreFree() {
        int messages = 2 * LANES;
        try (Running running = refusing(messages, Duration.ofMinutes(2), Duration.ofSeconds(1))) {
            await("every lane has tried again")
                    .atMost(Duration.ofSeconds(60))
                    .until(() -> running.listener.settleFailures.size() >= 3 * LANES);
            assertThat(Mono.fromCallable(() -> "ran")
                            .subscribeOn(Schedulers.boundedElastic())
                            .block(Duration.ofSeconds(2)))
                    .isEqualTo("ran");

            endAlarm();
            broker.awaitNoBacklog();
            running.stop();
        }
        assertThat(broker.deadLetters()).hasSize(messages);
    }

    /**
     * What the broker did not confirm in time it may still store when the alarm ends, and it is published again. The settlement
     * may take longer than the alarm, so the listener is told of each.
     */
    @Test
    void onlyWhatWasNotConfirmedInTimeMayBeThereTwice() {
        int messages = 2 * LANES;
        try (Running running = refusing(messages, Duration.ofMillis(500), Duration.ofMinutes(2))) {
            await().until(() -> running.listener.settleFailures.size() >= 3);
            endAlarm();
            broker.awaitNoBacklog();
            running.stop();
            assertThat(broker.deadLetters())
                    .hasSizeBetween(messages, messages + running.listener.settleFailures.size());
        }
    }

    @Test
    void acknowledgementsGoOn() {
        broker.publish("bad", "good");
        alarm();
        go.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);
        try (Running running = Running.start(
                broker.options().confirmLimit(Duration.ofSeconds(1)).build(),
                database.pool(6),
                refusingWhenAllowed())) {
            await().until(() -> running.listener.settleFailures.size() >= 2);
            await().until(() -> database.effectsOf("good") == 1);
            await().until(() -> broker.backlog() == 1);

            endAlarm();
            broker.awaitNoBacklog();
            assertThat(broker.deadLetters()).isNotEmpty();
            running.stop();
        }
    }

    @Test
    void aLargeOneThatTheSocketDoesNotTakeIsTriedAgainToo() {
        ConnectionFactory factory = broker.factory();
        factory.setSocketConfigurator(socket -> socket.setSendBufferSize(4096));
        byte[] large = ("bad" + " ".repeat(2_000_000)).getBytes(StandardCharsets.UTF_8);
        broker.publish(Broker.properties("bad").build(), large);
        try (Running running = Running.start(
                broker.options()
                        .connectionFactory(factory)
                        .confirmLimit(Duration.ofSeconds(1))
                        .build(),
                database.pool(6),
                refusingWhenAllowed(),
                builder -> builder.settleLimit(Duration.ofMinutes(2)))) {
            await().until(() -> underWay.get() == 1);
            alarm();
            go.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);
            await().atMost(Duration.ofSeconds(20)).until(() -> running.listener.settleFailures.size() >= 2);

            endAlarm();
            broker.awaitNoBacklog();
            running.stop();
        }
        assertThat(broker.deadLetters())
                .allSatisfy(letter -> assertThat(letter.getBody()).isEqualTo(large));
    }

    @Test
    void aStartDoesNotWaitForTheAlarmToEndHoweverLongDeadLettersMay() {
        broker.publish("good");
        alarm();
        go.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);
        try (Running running = Running.start(
                broker.options().confirmLimit(Duration.ofMinutes(2)).build(),
                database.pool(6),
                refusingWhenAllowed())) {
            await().atMost(Duration.ofSeconds(20)).until(() -> database.effectsOf("good") == 1);
            broker.awaitNoBacklog();
            running.stop();
        }
    }

    /** The broker sees the end of the connection that published only when it reads from it again. */
    @Test
    void aStopThatComesMeanwhileGivesTheMessagesBackAndLeavesNoConnectionBehind() {
        try (Running running = refusing(LANES, Duration.ofMinutes(2), Duration.ofSeconds(1))) {
            await().until(() -> !running.listener.settleFailures.isEmpty());
            running.consumer.stop(Duration.ofSeconds(1)).block(Duration.ofSeconds(10));
        }
        await("the broker has its messages back")
                .atMost(Duration.ofSeconds(30))
                .until(() -> broker.ready(broker.queue()) == LANES);

        endAlarm();
        await("no connection is left")
                .atMost(Duration.ofSeconds(30))
                .until(() -> service.ctl("-q", "list_connections", "pid").isBlank());
        assertThat(broker.deadLetters()).as("what had begun").hasSizeLessThanOrEqualTo(1);
    }
}
