package io.onceflux.examples.outbox;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.onceflux.IdempotentConsumer;
import io.onceflux.examples.loyalty.OrderCompleted;
import io.onceflux.outbox.Outbox;
import io.onceflux.outbox.OutboxEntry;
import io.onceflux.outbox.Relay;
import io.onceflux.postgres.OutboxTable;
import io.r2dbc.spi.ConnectionFactory;
import java.net.URI;
import java.time.Duration;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.publisher.Mono;

/** Points for an order, and a receipt by mail: the points in the effect's transaction, and in it the wish to send a receipt. */
public final class Receipts {

    /** What it needs, besides the tables of claims and outbox. */
    public static final String SCHEMA =
            "CREATE TABLE accounts (customer_id text PRIMARY KEY, points bigint NOT NULL DEFAULT 0)";

    private static final String RECEIPT = "receipt";

    // region: outbox
    private final Outbox outbox = Outbox.in(OutboxTable.outbox());

    public IdempotentConsumer<OrderCompleted> consumer(ConnectionFactory connections) {
        return IdempotentConsumer.<OrderCompleted>named("receipts")
                .identifiedBy(OrderCompleted::orderId)
                .effect((order, db) -> credit(order, db)
                        .then(outbox.append(db, OutboxEntry.of(RECEIPT, order.customerId(), json(order)))))
                .build(connections);
    }

    public Relay relay(URI service, ConnectionFactory connections) {
        return Relay.of(outbox)
                .to(RECEIPT, new ReceiptTarget(service))
                .sendLimit(Duration.ofSeconds(2))
                .build(connections);
    }
    // endregion

    private static Mono<Void> credit(OrderCompleted order, DatabaseClient db) {
        return db.sql("INSERT INTO accounts VALUES (:customer, :points)"
                        + " ON CONFLICT (customer_id) DO UPDATE SET points = accounts.points + EXCLUDED.points")
                .bind("customer", order.customerId())
                .bind("points", order.points())
                .then();
    }

    private static byte[] json(OrderCompleted order) {
        return "{\"order\":\"%s\",\"points\":%d}"
                .formatted(order.orderId(), order.points())
                .getBytes(UTF_8);
    }
}
