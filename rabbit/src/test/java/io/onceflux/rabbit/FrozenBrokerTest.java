package io.onceflux.rabbit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.rabbitmq.client.ConnectionFactory;
import io.onceflux.Database;
import io.onceflux.Effect;
import io.onceflux.Order;
import io.onceflux.Outcome;
import io.onceflux.services.RabbitService;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/** A broker that answers nothing while its connections stay open: no thread waits for it for ever, and it keeps no message. */
class FrozenBrokerTest {

    /** What closing a source may take, and a little more. */
    private static final Duration CLOSED = Duration.ofSeconds(15);

    private static final Duration HANDLED = Duration.ofSeconds(60);
    private static RabbitService service;

    private final Database database = Database.create();
    private Broker broker;

    /** A frozen broker reads no more than fits into a buffer, so that the sender's fills up too. */
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
        service.thaw();
        database.assertNothingLeaked();
        broker.close();
        database.close();
    }

    private static List<String> ids(int count) {
        return IntStream.range(0, count).mapToObj(i -> "order-" + i).toList();
    }

    /** So many acknowledgements that they fill the buffers of the socket on both sides. */
    private static final int MANY = 10_000;

    /** What is behind the first one cannot be acknowledged together with others. */
    private static Effect<Order> whereTheFirstWaitsFor(Mono<Void> go) {
        return (order, db) -> (order.id().equals("order-0") ? go : Mono.<Void>empty()).then(order.apply(db));
    }

    /** With a socket that can take no more after some hundred acknowledgements that the broker does not read. */
    private ConnectionFactory withSmallSocket() {
        ConnectionFactory factory = broker.factory();
        factory.setSocketConfigurator(socket -> {
            socket.setTcpNoDelay(true);
            socket.setSendBufferSize(4096);
        });
        return factory;
    }

    private Stream<Thread> threadsOfTheSource() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().equals("onceflux-rabbit-" + broker.queue()));
    }

    private boolean theSourceIs(String method) {
        return threadsOfTheSource()
                .anyMatch(thread -> Arrays.stream(thread.getStackTrace())
                        .anyMatch(frame -> frame.getMethodName().equals(method)));
    }

    private void assertTheRestIsHandledByAnother(int messages) {
        await("the broker has its messages back").atMost(HANDLED).until(() -> broker.unacknowledged() == 0);
        try (Running next = Running.start(broker.options().build(), database.pool(6), Order::apply)) {
            await().atMost(HANDLED).until(() -> database.effects() == messages);
            broker.awaitNoBacklog();
            next.stop();
        }
        database.assertAppliedOnce(messages);
    }

    @Test
    void aConsumerThatIsStoppedMeanwhileLeavesNoConnectionAndNoMessageBehind() {
        AtomicInteger underWay = new AtomicInteger();
        broker.publish(ids(50));
        Running stopping = Running.start(broker.options().build(), database.pool(5), (order, db) -> {
            underWay.incrementAndGet();
            return order.apply(db).then(Mono.never());
        });
        await().until(() -> underWay.get() == 4);
        service.freeze();

        stopping.consumer.stop(Duration.ofSeconds(1)).block(Duration.ofSeconds(10));

        await("the source is closed")
                .atMost(CLOSED)
                .until(() -> threadsOfTheSource().count() == 0);
        service.thaw();
        assertTheRestIsHandledByAnother(50);
    }

    @Test
    void aConsumerThatIsStoppedWhileItsThreadCannotWriteLeavesNoConnectionAndNoMessageBehind() {
        broker.publish(ids(MANY));
        Running stopping = Running.start(
                broker.options().connectionFactory(withSmallSocket()).build(),
                database.pool(6),
                Order::apply,
                builder -> builder.maxInFlight(MANY).settleLimit(Duration.ofMinutes(1)));
        await().until(() -> database.effects() >= 20);
        service.freeze();
        await("the socket takes no more")
                .atMost(HANDLED)
                .during(Duration.ofSeconds(1))
                .until(() -> theSourceIs("basicAck"));

        stopping.consumer.stop(Duration.ofSeconds(1)).block(Duration.ofSeconds(10));

        await("the source is closed")
                .atMost(CLOSED)
                .until(() -> threadsOfTheSource().count() == 0);
        service.thaw();
        assertTheRestIsHandledByAnother(MANY);
    }

    @Test
    void aConsumerThatIsStoppedWhileItConnectsLeavesNoConnectionBehind() {
        service.freeze();
        Running stopping = Running.start(broker.options().build(), database.pool(6), Order::apply);
        await("it connects").until(() -> theSourceIs("openNow"));
        stopping.consumer.stop().block(Duration.ofSeconds(10));
        service.thaw();

        await("the source is closed")
                .atMost(CLOSED)
                .until(() -> threadsOfTheSource().count() == 0);
        await("no connection is left")
                .atMost(HANDLED)
                .until(() -> service.ctl("-q", "list_connections", "pid").isBlank());
        assertThat(stopping.error.get()).isNull();
    }

    @Test
    void acknowledgementsThatCannotBeWrittenInTimeGiveTheConnectionUpAndTheirMessagesComeAgain() {
        broker.publish(ids(MANY));
        Sinks.Empty<Void> go = Sinks.empty();
        try (Running running = Running.start(
                broker.options().connectionFactory(withSmallSocket()).build(),
                database.pool(6),
                whereTheFirstWaitsFor(go.asMono()),
                builder -> builder.maxInFlight(MANY).settleLimit(Duration.ofSeconds(1)))) {
            await().until(() -> database.effects() >= 20);
            service.freeze();
            await().atMost(HANDLED).until(() -> !running.listener.settleFailures.isEmpty());
            await("the source does not wait for the broker").until(() -> !running.listener.lost.isEmpty());
            assertThat(running.listener.lost.get(0).reason()).contains("could not be written in time");
            service.thaw();
            go.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);

            await().atMost(HANDLED).until(() -> database.effects() == MANY);
            broker.awaitNoBacklog();
            assertThat(running.count(Outcome.Failed.class)).isZero();
            running.stop();
        }
        database.assertAppliedOnce(MANY);
    }
}
