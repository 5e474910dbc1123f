package io.onceflux.examples.loyalty;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.awaitility.Awaitility.await;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.MessageProperties;
import io.onceflux.rabbit.QueueDeclaration;
import io.onceflux.rabbit.RabbitOptions;
import io.onceflux.services.PostgresService;
import io.onceflux.services.RabbitService;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.pool.ConnectionPoolConfiguration;
import io.r2dbc.spi.ConnectionFactories;
import java.io.IOException;
import java.time.Duration;
import java.util.Map;
import org.springframework.r2dbc.core.DatabaseClient;

/** A queue of orders and a database with the customers C-1 and C-2, on real servers. */
final class Shop implements AutoCloseable {

    static final Duration LIMIT = Duration.ofSeconds(60);

    final String queue = "loyalty-" + System.nanoTime();
    final Channel channel;
    final ConnectionPool pool;
    private final String postgresUrl;
    private final DatabaseClient db;
    private final Connection broker;

    Shop() throws Exception {
        PostgresService postgres = PostgresService.shared();
        postgresUrl = postgres.r2dbcUrl(postgres.newDatabase());
        pool = new ConnectionPool(ConnectionPoolConfiguration.builder(ConnectionFactories.get(postgresUrl))
                .maxSize(LoyaltyService.LANES + 1)
                .build());
        db = DatabaseClient.create(pool);
        LoyaltySchema.create(pool).block();
        addCustomers("C-1", "C-2");
        ConnectionFactory factory = new ConnectionFactory();
        factory.setUri(RabbitService.shared().uri());
        broker = factory.newConnection();
        channel = broker.createChannel();
    }

    RabbitOptions options() {
        return RabbitOptions.queue(queue)
                .uri(RabbitService.shared().uri())
                .declare(QueueDeclaration.classic())
                .build();
    }

    /** What {@link LoyaltyApplication} is told. */
    Map<String, String> settings() {
        return Map.of(
                "loyalty.queue", queue,
                "loyalty.rabbit.uri", RabbitService.shared().uri(),
                "loyalty.postgres.url", postgresUrl);
    }

    void awaitConsumer() {
        await().atMost(LIMIT).ignoreExceptions().until(() -> {
            try (Channel look = broker.createChannel()) {
                return look.queueDeclarePassive(queue).getConsumerCount() == 1;
            }
        });
    }

    void run(String sql) {
        db.sql(sql).then().block(LIMIT);
    }

    void addCustomers(String... customers) {
        for (String customer : customers) {
            run("INSERT INTO balances (customer_id) VALUES ('" + customer + "')");
        }
    }

    void publish(String json) throws Exception {
        channel.basicPublish("", queue, MessageProperties.PERSISTENT_BASIC, json.getBytes(UTF_8));
    }

    static String order(String id, String customer, int points) {
        return "{\"orderId\": \"%s\", \"customerId\": \"%s\", \"points\": %d, \"shop\": \"new field\"}"
                .formatted(id, customer, points);
    }

    long waiting() throws Exception {
        return channel.messageCount(queue);
    }

    void awaitDeadLetters(int count) {
        await().atMost(LIMIT).until(() -> channel.messageCount(queue + ".dlq") == count);
    }

    long points(String customer) {
        return number("SELECT points FROM balances WHERE customer_id = '" + customer + "'");
    }

    long ledgerRows() {
        return number("SELECT count(*) FROM point_ledger");
    }

    long claims() {
        return number("SELECT count(*) FROM processed_messages");
    }

    private long number(String sql) {
        return db.sql(sql).mapValue(Long.class).one().blockOptional().orElseThrow();
    }

    @Override
    public void close() throws IOException {
        channel.queueDelete(queue);
        channel.queueDelete(queue + ".dlq");
        broker.close();
        pool.disposeLater().block(LIMIT);
    }
}
