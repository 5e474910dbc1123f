package io.onceflux.examples.loyalty;

import io.onceflux.DeadLetters;
import io.onceflux.Delivery;
import io.onceflux.services.PostgresService;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.pool.ConnectionPoolConfiguration;
import io.r2dbc.spi.ConnectionFactories;
import java.io.IOException;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.publisher.Flux;

/** A place for orders at a broker and a database with the customers C-1 and C-2, on real servers. */
abstract class Shop implements AutoCloseable {

    static final Duration LIMIT = Duration.ofSeconds(60);

    final ConnectionPool pool;
    private final String postgresUrl;
    private final DatabaseClient db;

    Shop() {
        PostgresService postgres = PostgresService.shared();
        postgresUrl = postgres.r2dbcUrl(postgres.newDatabase());
        pool = new ConnectionPool(ConnectionPoolConfiguration.builder(ConnectionFactories.get(postgresUrl))
                .maxSize(LoyaltyService.LANES + 1)
                .build());
        db = DatabaseClient.create(pool);
        LoyaltySchema.create(pool).block();
        addCustomers("C-1", "C-2");
    }

    abstract Flux<Delivery<byte[]>> orders();

    abstract DeadLetters deadLetters();

    /** Those of {@link #settings()} that are about the broker. */
    abstract Map<String, String> brokerSettings();

    abstract void awaitConsumer();

    abstract void publish(String json) throws Exception;

    /** What {@link LoyaltyApplication} is told. */
    Map<String, String> settings() {
        Map<String, String> settings = new HashMap<>(brokerSettings());
        settings.put("loyalty.postgres.url", postgresUrl);
        return settings;
    }

    void run(String sql) {
        db.sql(sql).then().block(LIMIT);
    }

    void addCustomers(String... customers) {
        for (String customer : customers) {
            run("INSERT INTO balances (customer_id) VALUES ('" + customer + "')");
        }
    }

    static String order(String id, String customer, int points) {
        return "{\"orderId\": \"%s\", \"customerId\": \"%s\", \"points\": %d, \"shop\": \"new field\"}"
                .formatted(id, customer, points);
    }

    abstract void awaitDeadLetters(int count);

    long points(String customer) {
        return number("SELECT points FROM balances WHERE customer_id = '" + customer + "'");
    }

    long ledgerRows() {
        return number("SELECT count(*) FROM point_ledger");
    }

    long claims() {
        return number("SELECT count(*) FROM processed_messages");
    }

    long number(String sql) {
        return db.sql(sql).mapValue(Long.class).one().blockOptional().orElseThrow();
    }

    @Override
    public void close() throws IOException {
        pool.disposeLater().block(LIMIT);
    }
}
