package io.onceflux.chaos.consumer;

import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.publisher.Mono;

/** The effect: a balance, some work, and a row in a ledger that would take the same message twice. */
final class Credit {

    private Credit() {}

    static Mono<Void> apply(Order order, DatabaseClient db) {
        return addToBalance(order, db).then(Mono.delay(order.work())).then(enterInLedger(order, db));
    }

    private static Mono<Void> addToBalance(Order order, DatabaseClient db) {
        return db.sql("UPDATE balances SET points = points + :points WHERE customer = :customer")
                .bind("points", order.points())
                .bind("customer", order.customer())
                .then();
    }

    private static Mono<Void> enterInLedger(Order order, DatabaseClient db) {
        return db.sql("INSERT INTO ledger (message_id, customer, points) VALUES (:id, :customer, :points)")
                .bind("id", order.id())
                .bind("customer", order.customer())
                .bind("points", order.points())
                .then();
    }
}
