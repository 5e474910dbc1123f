package io.onceflux.benchmarks.scenario;

import java.util.List;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.publisher.Mono;

/** The effect over R2DBC, as in the loyalty service of the examples. */
public final class Credit {

    private Credit() {}

    /** Two statements a message. */
    public static Mono<Void> one(Order order, DatabaseClient db) {
        return addToBalance(order, db).then(enterInLedger(order, db));
    }

    private static Mono<Void> addToBalance(Order order, DatabaseClient db) {
        return db.sql("UPDATE balances SET points = points + :points WHERE customer_id = :customer")
                .bind("points", order.points())
                .bind("customer", order.customerId())
                .fetch()
                .rowsUpdated()
                .filter(rows -> rows == 1)
                .switchIfEmpty(Mono.error(() -> new IllegalStateException("no customer " + order.customerId())))
                .then();
    }

    private static Mono<Void> enterInLedger(Order order, DatabaseClient db) {
        return db.sql("INSERT INTO point_ledger (order_id, customer_id, points) VALUES (:order, :customer, :points)")
                .bind("order", order.orderId())
                .bind("customer", order.customerId())
                .bind("points", order.points())
                .then();
    }

    /** Two statements for all the messages of a transaction. */
    public static Mono<Void> all(List<Order> orders, DatabaseClient db) {
        String[] customers = orders.stream().map(Order::customerId).toArray(String[]::new);
        Long[] points = orders.stream().map(Order::points).toArray(Long[]::new);
        return addToBalances(customers, points, db).then(enterInLedger(orders, customers, points, db));
    }

    private static Mono<Void> addToBalances(String[] customers, Long[] points, DatabaseClient db) {
        return db.sql("""
                        UPDATE balances SET points = balances.points + sums.points
                        FROM (
                            SELECT customer_id, sum(points)::bigint AS points
                            FROM unnest(:customers::text[], :points::bigint[]) AS orders (customer_id, points)
                            GROUP BY customer_id
                        ) AS sums
                        WHERE balances.customer_id = sums.customer_id
                        """).bind("customers", customers).bind("points", points).then();
    }

    private static Mono<Void> enterInLedger(List<Order> orders, String[] customers, Long[] points, DatabaseClient db) {
        return db.sql("""
                        INSERT INTO point_ledger (order_id, customer_id, points)
                        SELECT * FROM unnest(:orders::text[], :customers::text[], :points::bigint[])
                        """)
                .bind("orders", orders.stream().map(Order::orderId).toArray(String[]::new))
                .bind("customers", customers)
                .bind("points", points)
                .then();
    }
}
