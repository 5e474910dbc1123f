package io.onceflux.examples.outbox;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.Delivery;
import io.onceflux.IdempotentConsumer;
import io.onceflux.Outcome;
import io.onceflux.examples.loyalty.OrderCompleted;
import io.onceflux.outbox.Outbox;
import io.onceflux.outbox.Relay;
import io.onceflux.postgres.ClaimTable;
import io.onceflux.postgres.OutboxTable;
import io.onceflux.services.PostgresService;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.pool.ConnectionPoolConfiguration;
import io.r2dbc.spi.ConnectionFactories;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;

class ReceiptsTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);

    private final PostgresService postgres = PostgresService.shared();
    private final ConnectionPool pool = new ConnectionPool(
            ConnectionPoolConfiguration.builder(ConnectionFactories.get(postgres.r2dbcUrl(postgres.newDatabase())))
                    .maxSize(20)
                    .build());

    @AfterEach
    void close() {
        pool.disposeLater().block(LIMIT);
    }

    @Test
    void eachOrderHasOneReceiptHoweverTheServiceBehaves() {
        ClaimTable.processedMessages().create(pool).block(LIMIT);
        OutboxTable.outbox().create(pool).block(LIMIT);
        DatabaseClient.create(pool).sql(Receipts.SCHEMA).then().block(LIMIT);
        Receipts receipts = new Receipts();
        try (ReceiptService service = new ReceiptService()) {
            Relay relay = receipts.relay(service.uri(), pool);
            Disposable running = relay.run().subscribe();
            IdempotentConsumer<OrderCompleted> consumer = receipts.consumer(pool);
            List<Outcome> outcomes = Objects.requireNonNull(Flux.fromStream(
                            IntStream.range(0, 100).mapToObj(i -> new OrderCompleted("A-" + i % 50, "C-" + i % 10, 10)))
                    .map(order -> Delivery.of(null, order))
                    .transform(consumer)
                    .collectList()
                    .block(LIMIT));
            assertThat(outcomes).filteredOn(Outcome.Applied.class::isInstance).hasSize(50);

            Outbox outbox = Outbox.in(OutboxTable.outbox());
            await().atMost(LIMIT)
                    .until(() -> Objects.requireNonNull(outbox.state(pool).block(LIMIT))
                                    .pending()
                            == 0);
            assertThat(service.sent()).hasSize(49);
            assertThat(service.sent().values()).containsOnly(1);
            assertThat(service.calls()).as("some were asked for again").isGreaterThan(50);
            assertThat(outbox.parked(pool).collectList().block(LIMIT))
                    .singleElement()
                    .satisfies(parked -> assertThat(parked.reason()).contains("refused the receipt: 422"));
            relay.stop().block(LIMIT);
            await().until(running::isDisposed);
        }
    }
}
