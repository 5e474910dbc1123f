package io.onceflux.rabbit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.Database;
import io.onceflux.MessageKey;
import io.onceflux.Outcome;
import io.onceflux.PermanentFailure;
import io.onceflux.services.RabbitService;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/**
 * The broker is away while acknowledgements and a dead letter are due. What else the process does on the event loops of the
 * database's driver goes on; BlockHound watches them too.
 */
class BrokerAwayTest {

    private static final Duration AWAY = Duration.ofSeconds(8);

    private final RabbitService service = RabbitService.start();
    private final Broker broker = Broker.on(service);
    private final Database database = Database.create();
    private final AtomicInteger underWay = new AtomicInteger();
    private final Sinks.Empty<Void> go = Sinks.empty();
    private final List<Duration> beside = new CopyOnWriteArrayList<>();

    @AfterEach
    void close() {
        database.assertNothingLeaked();
        database.close();
        service.close();
    }

    @Test
    void aBrokerThatIsKilledHoldsUpNothingBeside() {
        holdsUpNothingBeside(service::kill, service::restart);
    }

    @Test
    void aBrokerThatDoesNotAnswerHoldsUpNothingBeside() {
        holdsUpNothingBeside(service::freeze, service::thaw);
    }

    private void holdsUpNothingBeside(Runnable goAway, Runnable comeBack) {
        broker.declare();
        broker.publish(IntStream.range(0, 19).mapToObj(n -> "order-" + n).toList());
        broker.publish("bad");
        service.ctl("eval", "mnesia:dump_log()."); // The broker writes new queues to disk some seconds later.
        try (Running running = Running.start(
                broker.options().build(),
                database.pool(21),
                (order, db) -> Mono.defer(() -> {
                            underWay.incrementAndGet();
                            return go.asMono();
                        })
                        .then(order.id().equals("bad") ? Mono.error(new PermanentFailure("refused")) : order.apply(db)),
                builder -> builder.lanes(20))) {
            await().until(() -> underWay.get() >= 10);
            int due = underWay.get();

            goAway.run();
            Disposable queries = hundredQueriesASecond();
            go.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);
            await().until(() -> database.effects() >= due - 1);
            long since = System.nanoTime();
            await().atMost(AWAY.multipliedBy(2)).until(() -> System.nanoTime() - since > AWAY.toNanos());
            queries.dispose();

            assertThat(beside).as("queries that went on").hasSizeGreaterThan(400);
            assertThat(Collections.max(beside)).as("the slowest of them").isLessThan(Duration.ofSeconds(1));

            comeBack.run();
            await().atMost(Duration.ofSeconds(60)).until(() -> database.effects() == 19);
            broker.awaitNoBacklog();
            await().untilAsserted(() -> assertThat(broker.deadLetters()).isNotEmpty());
            assertThat(running.outcomes)
                    .filteredOn(Outcome.Failed.class::isInstance)
                    .as("only the one that the effect refuses")
                    .allMatch(outcome -> new MessageKey("loyalty", "bad").equals(outcome.key()));
            running.stop();
        }
        database.assertAppliedOnce(19);
    }

    private Disposable hundredQueriesASecond() {
        DatabaseClient client = DatabaseClient.create(database.pool(10));
        return Flux.interval(Duration.ofMillis(10))
                .onBackpressureDrop()
                .flatMap(
                        tick -> client.sql("SELECT 1")
                                .fetch()
                                .one()
                                .elapsed()
                                .doOnNext(answer -> beside.add(Duration.ofMillis(answer.getT1()))),
                        50)
                .subscribe();
    }
}
