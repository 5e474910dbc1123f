package io.onceflux.examples.naturalkey;

import io.onceflux.IdempotentConsumer;
import io.onceflux.NoRows;
import io.onceflux.PermanentFailure;
import io.onceflux.examples.loyalty.OrderCompleted;
import io.onceflux.postgres.UniqueKey;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.Readable;
import java.util.Objects;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.publisher.Mono;

/**
 * Points in one statement: it enters the order in the ledger, and only if that was new adds them to the balance. There is no claim, and so
 * nothing that expires: an order that comes again after years is still found to be there.
 */
public final class LedgerCredit {

    /** What it needs. */
    public static final String SCHEMA = """
            CREATE TABLE accounts (customer_id text PRIMARY KEY, points bigint NOT NULL DEFAULT 0);
            CREATE TABLE entries (
                order_id text PRIMARY KEY,
                customer_id text NOT NULL,
                points bigint NOT NULL,
                entered_at timestamptz NOT NULL DEFAULT now()
            )""";

    /** What is counted is the entry, not the balance: a balance that is missing is no duplicate. */
    private static final String CREDIT = """
            WITH entry AS (
                INSERT INTO entries (order_id, customer_id, points) VALUES (:order, :customer, :points)
                ON CONFLICT (order_id) DO NOTHING
                RETURNING customer_id, points
            ), credited AS (
                UPDATE accounts SET points = accounts.points + entry.points FROM entry
                WHERE accounts.customer_id = entry.customer_id
                RETURNING 1
            )
            SELECT (SELECT count(*) FROM entry) AS entered, (SELECT count(*) FROM credited) AS credited""";

    private LedgerCredit() {}

    public static IdempotentConsumer<OrderCompleted> consumer(ConnectionFactory connections) {
        return IdempotentConsumer.<OrderCompleted>named("ledger")
                .identifiedBy(OrderCompleted::orderId)
                .orderedBy(OrderCompleted::customerId)
                .naturalKey(UniqueKey.of("entries", "order_id"))
                .conditionalEffect(LedgerCredit::credit, NoRows.DUPLICATE)
                .build(connections);
    }

    private static Mono<Long> credit(OrderCompleted order, DatabaseClient db) {
        return db.sql(CREDIT)
                .bind("order", order.orderId())
                .bind("customer", order.customerId())
                .bind("points", order.points())
                .map(row -> entered(row, order))
                .one();
    }

    private static Long entered(Readable row, OrderCompleted order) {
        Long entered = Objects.requireNonNull(row.get("entered", Long.class));
        if (!entered.equals(row.get("credited", Long.class))) {
            throw new PermanentFailure("no account of " + order.customerId());
        }
        return entered;
    }
}
