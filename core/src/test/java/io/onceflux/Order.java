package io.onceflux;

import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.publisher.Mono;

/** The payload of these tests: an order that earns points. */
public record Order(String id, String customer, long points) {

    public static Order of(String id) {
        return new Order(id, "c-" + id, 10);
    }

    /** The effect of the loyalty service: a balance that grows, and a row that shows every time it did. */
    public Mono<Void> apply(DatabaseClient db) {
        return db.sql("INSERT INTO balances VALUES (:c, :p)"
                        + " ON CONFLICT (customer_id) DO UPDATE SET points = balances.points + EXCLUDED.points")
                .bind("c", customer)
                .bind("p", points)
                .then()
                .then(note(db));
    }

    /** The row of the ledger alone. */
    public Mono<Void> note(DatabaseClient db) {
        return db.sql("INSERT INTO point_ledger VALUES (:o, :c, :p)")
                .bind("o", id)
                .bind("c", customer)
                .bind("p", points)
                .then();
    }
}
