package io.onceflux;

import java.util.List;
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

    /** The effect of several orders: two statements over all of them. */
    public static Mono<Void> applyAll(List<Order> orders, DatabaseClient db) {
        return db.sql("INSERT INTO balances"
                        + " SELECT customer, sum(points) FROM unnest(:c::text[], :p::bigint[]) AS o (customer, points)"
                        + " GROUP BY 1 ORDER BY 1"
                        + " ON CONFLICT (customer_id) DO UPDATE SET points = balances.points + EXCLUDED.points")
                .bind("c", customers(orders))
                .bind("p", points(orders))
                .then()
                .then(db.sql("INSERT INTO point_ledger SELECT * FROM unnest(:o::text[], :c::text[], :p::bigint[])")
                        .bind("o", orders.stream().map(Order::id).toArray(String[]::new))
                        .bind("c", customers(orders))
                        .bind("p", points(orders))
                        .then());
    }

    private static String[] customers(List<Order> orders) {
        return orders.stream().map(Order::customer).toArray(String[]::new);
    }

    private static Long[] points(List<Order> orders) {
        return orders.stream().map(Order::points).toArray(Long[]::new);
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
