package io.onceflux.examples.demo;

import static java.util.Objects.requireNonNull;

import io.onceflux.examples.loyalty.LoyaltySchema;
import io.onceflux.examples.loyalty.OrderCompleted;
import io.onceflux.examples.naive.NaiveConsumer;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.pool.ConnectionPoolConfiguration;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactories;
import io.r2dbc.spi.Readable;
import java.util.List;
import org.springframework.core.io.ClassPathResource;
import org.springframework.r2dbc.connection.init.ScriptUtils;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.publisher.Mono;

/** Writes down what was published, and reads all figures from the tables. Blocks. */
final class Bookkeeping implements AutoCloseable {

    private final ConnectionPool connections;
    private final DatabaseClient db;

    private Bookkeeping(ConnectionPool connections) {
        this.connections = connections;
        this.db = DatabaseClient.create(connections);
    }

    static Bookkeeping in(String url) {
        return new Bookkeeping(new ConnectionPool(ConnectionPoolConfiguration.builder(ConnectionFactories.get(url))
                .initialSize(1)
                .maxSize(1)
                .build()));
    }

    /** Creates all tables, and a balance of 0 for every customer. */
    void open(List<String> customers) {
        Mono<Void> naiveSchema = Mono.usingWhen(
                connections.create(),
                connection -> ScriptUtils.executeSqlScript(
                        connection, new ClassPathResource("naive.sql", NaiveConsumer.class)),
                Connection::close);
        LoyaltySchema.create(connections).then(naiveSchema).block();
        run("""
            CREATE TABLE published (
                publication bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                contender text NOT NULL,
                order_id text NOT NULL,
                customer_id text NOT NULL,
                points bigint NOT NULL
            )
            """);
        for (Contender contender : Contender.values()) {
            db.sql("INSERT INTO %s (customer_id) SELECT unnest(:customers)".formatted(contender.balances()))
                    .bind("customers", customers.toArray(String[]::new))
                    .then()
                    .block();
        }
    }

    void published(Contender contender, List<OrderCompleted> orders) {
        db.sql("""
               INSERT INTO published (contender, order_id, customer_id, points)
               SELECT :contender, * FROM unnest(:orders, :customers, :points)
               """)
                .bind("contender", contender.name())
                .bind("orders", orders.stream().map(OrderCompleted::orderId).toArray(String[]::new))
                .bind(
                        "customers",
                        orders.stream().map(OrderCompleted::customerId).toArray(String[]::new))
                .bind("points", orders.stream().map(OrderCompleted::points).toArray(Long[]::new))
                .then()
                .block();
    }

    /** Distinct orders that are credited by now. */
    long creditedOrders(Contender contender) {
        return requireNonNull(db.sql("SELECT count(DISTINCT order_id) FROM " + contender.ledger())
                .mapValue(Long.class)
                .one()
                .block());
    }

    Books read(Contender contender, long queued, long deadLetters) {
        return requireNonNull(db.sql("""
                WITH sent AS (SELECT * FROM published WHERE contender = :contender),
                     orders AS (SELECT DISTINCT order_id, customer_id, points FROM sent),
                     due AS (SELECT customer_id, sum(points) AS points FROM orders GROUP BY customer_id)
                SELECT (SELECT count(*) FROM orders) AS orders,
                       (SELECT count(*) FROM sent) AS deliveries,
                       (SELECT count(*) FROM %1$s) AS credits,
                       (SELECT count(DISTINCT order_id) FROM %1$s) AS credited_orders,
                       (SELECT coalesce(sum(points), 0)::bigint FROM orders) AS points_due,
                       (SELECT coalesce(sum(points), 0)::bigint FROM %2$s) AS points,
                       (SELECT count(*) FROM %2$s AS has LEFT JOIN due USING (customer_id)
                         WHERE has.points <> coalesce(due.points, 0)) AS wrong_balances
                """.formatted(contender.ledger(), contender.balances()))
                .bind("contender", contender.name())
                .map(row -> new Books(
                        number(row, "orders"),
                        number(row, "deliveries"),
                        number(row, "credits"),
                        number(row, "credited_orders"),
                        number(row, "points_due"),
                        number(row, "points"),
                        number(row, "wrong_balances"),
                        queued,
                        deadLetters))
                .one()
                .block());
    }

    private void run(String sql) {
        db.sql(sql).then().block();
    }

    private static long number(Readable row, String column) {
        return requireNonNull(row.get(column, Long.class));
    }

    @Override
    public void close() {
        connections.dispose();
    }
}
