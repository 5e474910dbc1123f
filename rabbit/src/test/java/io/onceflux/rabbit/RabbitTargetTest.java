package io.onceflux.rabbit;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.rabbitmq.client.GetResponse;
import io.onceflux.Database;
import io.onceflux.InvalidSetupException;
import io.onceflux.outbox.Outbox;
import io.onceflux.outbox.OutboxEntry;
import io.onceflux.outbox.Relay;
import io.onceflux.outbox.Relayed;
import io.onceflux.postgres.OutboxTable;
import io.onceflux.services.RabbitService;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.spi.Connection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;

/** An outbox that is sent to RabbitMQ. */
class RabbitTargetTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final RabbitService SERVICE = RabbitService.start();

    private final Database database = Database.create();
    private final Broker broker = Broker.on(SERVICE);
    private final ConnectionPool pool = database.pool(12);
    private final Outbox outbox = Outbox.in(OutboxTable.outbox());
    private final List<Relayed> told = new CopyOnWriteArrayList<>();

    @AfterAll
    static void stop() {
        SERVICE.close();
    }

    @BeforeEach
    void createTable() {
        OutboxTable.outbox().create(pool).block(LIMIT);
    }

    @AfterEach
    void close() {
        database.assertNothingLeaked();
        broker.close();
        database.close();
    }

    private void append(int from, int to) {
        Flux.usingWhen(
                        database.direct().create(),
                        connection -> Flux.range(from, to - from)
                                .concatMap(n -> outbox.appendAs(
                                        connection,
                                        "key-" + n,
                                        OutboxEntry.of(
                                                        "credited",
                                                        "k" + n % 7,
                                                        Integer.toString(n).getBytes(UTF_8))
                                                .header("content-type", "text/plain")
                                                .header("number", Integer.toString(n)))),
                        Connection::close)
                .then()
                .block(LIMIT);
    }

    private Running start(RabbitTarget target) {
        return new Running(target);
    }

    private final class Running {
        private final RabbitTarget target;
        private final Relay relay;
        private final Disposable subscription;

        Running(RabbitTarget target) {
            this.target = target;
            this.relay = Relay.of(outbox)
                    .to("credited", target)
                    .backoff(Duration.ofMillis(50), Duration.ofMillis(500))
                    .build(pool);
            this.subscription = relay.run().subscribe(told::add);
        }

        void stop() {
            relay.stop().block(LIMIT);
            target.close().block(LIMIT);
            await().until(subscription::isDisposed);
        }
    }

    private OutboxTable.State state() {
        return Objects.requireNonNull(outbox.state(pool).block(LIMIT));
    }

    @Test
    void entriesArriveWithTheirKeyAsMessageId() throws Exception {
        broker.declare();
        append(0, 300);
        Running running = start(RabbitTarget.queue(broker.factory(), broker.queue()));
        try {
            await().atMost(LIMIT).until(() -> broker.ready(broker.queue()) == 300 && state().pending() == 0);
        } finally {
            running.stop();
        }
        GetResponse first = broker.take();
        String number = new String(first.getBody(), UTF_8);
        assertThat(first.getProps().getMessageId()).isEqualTo("key-" + number);
        assertThat(first.getProps().getDeliveryMode()).isEqualTo(2);
        assertThat(first.getProps().getContentType()).isEqualTo("text/plain");
        assertThat(first.getProps().getHeaders()).containsOnlyKeys("number");
    }

    /** Case O6. */
    @Test
    void whatNoQueueTakesStaysPendingWithTheReasonAndArrivesOnceThereIsOne() {
        append(0, 3);
        Running running = start(RabbitTarget.queue(broker.factory(), broker.queue()));
        try {
            await().atMost(LIMIT)
                    .until(() -> told.stream()
                            .anyMatch(one -> one instanceof Relayed.Failed failed
                                    && failed.message().attempt() > 1));
            assertThat(state().pending()).isEqualTo(3);
            assertThat(database.texts("SELECT reason FROM outbox WHERE reason IS NOT NULL"))
                    .isNotEmpty()
                    .allMatch(reason -> reason.contains("no queue takes messages published to exchange ''"));
            broker.declare();
            await().atMost(LIMIT).until(() -> state().pending() == 0);
            assertThat(broker.ready(broker.queue())).isEqualTo(3);
        } finally {
            running.stop();
        }
    }

    @Test
    void aBrokerThatIsKilledAndComesBackHasEachEntryAtLeastOnce() {
        broker.declare();
        Running running = start(RabbitTarget.queue(broker.factory(), broker.queue()));
        try {
            append(0, 200);
            await().atMost(LIMIT).until(() -> told.size() > 20);
            SERVICE.kill();
            append(200, 400);
            await().atMost(LIMIT).until(() -> told.stream().anyMatch(Relayed.Failed.class::isInstance));
            SERVICE.restart();
            await().atMost(LIMIT).until(() -> state().pending() == 0);
        } finally {
            running.stop();
        }
        List<String> bodies = new ArrayList<>();
        for (long left = broker.ready(broker.queue()); left > 0; left--) {
            bodies.add(new String(broker.take().getBody(), UTF_8));
        }
        assertThat(bodies.stream().distinct()).hasSize(400);
    }

    @Test
    void anEntryThatCannotBeAMessageHarmsNoOther() {
        broker.declare();
        append(0, 50);
        database.run(
                "UPDATE outbox SET header_values = ARRAY[repeat('x', 200000), 'x'] WHERE idempotency_key = 'key-30'");
        Running running = start(RabbitTarget.exchange(
                broker.factory(),
                "",
                message -> message.idempotencyKey().equals("key-20") ? "x".repeat(256) : broker.queue()));
        try {
            await().atMost(LIMIT).until(() -> state().pending() == 0);
            assertThat(told).noneMatch(Relayed.Failed.class::isInstance);
            assertThat(state().parked()).isEqualTo(2);
            assertThat(broker.ready(broker.queue())).isEqualTo(48);
        } finally {
            running.stop();
        }
    }

    @Test
    void whatCannotWorkIsRefused() {
        assertThatThrownBy(() -> RabbitTarget.queue(broker.factory(), " "))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("queue must not be blank");
    }
}
