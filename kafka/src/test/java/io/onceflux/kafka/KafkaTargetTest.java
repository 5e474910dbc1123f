package io.onceflux.kafka;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.onceflux.Database;
import io.onceflux.InvalidSetupException;
import io.onceflux.outbox.Outbox;
import io.onceflux.outbox.OutboxEntry;
import io.onceflux.outbox.Relay;
import io.onceflux.outbox.Relayed;
import io.onceflux.postgres.OutboxTable;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.spi.Connection;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;

/** An outbox that is sent to Kafka. */
class KafkaTargetTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);

    private final Database database = Database.create();
    private final Broker broker = Broker.create();
    private final ConnectionPool pool = database.pool(12);
    private final Outbox outbox = Outbox.in(OutboxTable.outbox());

    @AfterEach
    void close() {
        database.assertNothingLeaked();
        broker.close();
        database.close();
    }

    private void append(int count) {
        OutboxTable.outbox().create(pool).block(LIMIT);
        Flux.usingWhen(
                        database.direct().create(),
                        connection -> Flux.range(0, count)
                                .concatMap(n -> outbox.appendAs(
                                        connection,
                                        "key-" + n,
                                        OutboxEntry.of(
                                                        "credited",
                                                        "k" + n % 7,
                                                        Integer.toString(n).getBytes(UTF_8))
                                                .header("number", Integer.toString(n)))),
                        Connection::close)
                .then()
                .block(LIMIT);
    }

    @Test
    void entriesArriveInTheOrderOfTheirKeyOnceTheTopicIsThere() {
        append(300);
        KafkaTarget target =
                KafkaTarget.topic(broker.topic(), Map.of("bootstrap.servers", broker.bootstrap(), "max.block.ms", 500));
        List<Relayed> told = new CopyOnWriteArrayList<>();
        Relay relay = Relay.of(outbox)
                .to("credited", target)
                .backoff(Duration.ofMillis(50), Duration.ofMillis(500))
                .build(pool);
        Disposable running = relay.run().subscribe(told::add);
        await().until(() -> told.stream().anyMatch(Relayed.Failed.class::isInstance));
        broker.createTopic(broker.topic(), 3, Map.of());
        await().until(() ->
                Objects.requireNonNull(outbox.state(pool).block(LIMIT)).pending() == 0);
        relay.stop().block(LIMIT);
        target.close().block(LIMIT);
        await().until(running::isDisposed);

        List<ConsumerRecord<byte[], byte[]>> records = broker.read(broker.topic());
        assertThat(records).hasSize(300);
        Map<String, Integer> last = new HashMap<>();
        for (ConsumerRecord<byte[], byte[]> record : records) {
            int number = Integer.parseInt(new String(record.value(), UTF_8));
            assertThat(record.headers().lastHeader(KafkaTarget.IDEMPOTENCY_KEY).value())
                    .isEqualTo(("key-" + number).getBytes(UTF_8));
            assertThat(record.headers().lastHeader("number").value())
                    .isEqualTo(Integer.toString(number).getBytes(UTF_8));
            String key = new String(record.key(), UTF_8);
            assertThat(key).isEqualTo("k" + number % 7);
            assertThat(last.getOrDefault(key, -1)).isLessThan(number);
            last.put(key, number);
        }
    }

    @Test
    void whatWouldLoseEntriesIsRefused() {
        assertThatThrownBy(() -> KafkaTarget.topic("t", Map.of()))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("bootstrap.servers is missing");
        assertThatThrownBy(() -> KafkaTarget.topic("t", Map.of("bootstrap.servers", "localhost:9092", "acks", "1")))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("acks of the producer of an outbox must be all");
    }
}
