package io.onceflux.examples.loyalty;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import io.onceflux.Delivery;
import io.onceflux.IdempotentConsumer;
import io.onceflux.Outcome;
import io.onceflux.PermanentFailure;
import io.r2dbc.spi.ConnectionFactory;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Credits the points of completed orders to the customers' balances: each order once, in any number of instances. */
public final class LoyaltyService {

    static final int LANES = 16;

    // region: reader
    /** Fields that are new to us may come; a field that is missing makes the message a dead letter, not a credit of 0. */
    static final ObjectReader JSON = new ObjectMapper()
            .readerFor(OrderCompleted.class)
            .without(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
            .with(
                    DeserializationFeature.FAIL_ON_MISSING_CREATOR_PROPERTIES,
                    DeserializationFeature.FAIL_ON_NULL_CREATOR_PROPERTIES);
    // endregion

    private final Flux<Delivery<byte[]>> orders;
    private final IdempotentConsumer<OrderCompleted> loyalty;

    // region: pipeline
    public LoyaltyService(Flux<Delivery<byte[]>> orders, ConnectionFactory connections) {
        this.orders = orders;
        this.loyalty = IdempotentConsumer.<OrderCompleted>named("loyalty")
                .identifiedBy(order -> "order-completed:" + order.orderId())
                .orderedBy(OrderCompleted::customerId)
                .lanes(LANES)
                .effect(LoyaltyService::credit)
                .build(connections);
    }

    /** Runs from the subscription until {@link #stop()}. */
    public Flux<Outcome> run() {
        return orders.map(Delivery.decoding(JSON::<OrderCompleted>readValue)).transform(loyalty);
    }
    // endregion

    /** Takes no more orders, and completes when those at work are committed and acknowledged. */
    public Mono<Void> stop() {
        return loyalty.stop();
    }

    // region: effect
    /** Both statements are in one transaction with the claim of the order. */
    static Mono<Void> credit(OrderCompleted order, DatabaseClient db) {
        return addToBalance(order, db).then(enterInLedger(order, db));
    }

    private static Mono<Void> addToBalance(OrderCompleted order, DatabaseClient db) {
        return db.sql("UPDATE balances SET points = points + :points WHERE customer_id = :customer")
                .bind("points", order.points())
                .bind("customer", order.customerId())
                .fetch()
                .rowsUpdated()
                .filter(rows -> rows == 1)
                .switchIfEmpty(Mono.error(() -> new PermanentFailure("no customer " + order.customerId())))
                .then();
    }

    private static Mono<Void> enterInLedger(OrderCompleted order, DatabaseClient db) {
        return db.sql("INSERT INTO point_ledger (order_id, customer_id, points) VALUES (:order, :customer, :points)")
                .bind("order", order.orderId())
                .bind("customer", order.customerId())
                .bind("points", order.points())
                .then();
    }
    // endregion
}
