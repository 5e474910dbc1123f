package io.onceflux.examples.loyalty;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.GetResponse;
import com.rabbitmq.client.MessageProperties;
import io.onceflux.Outcome;
import io.onceflux.rabbit.QueueDeclaration;
import io.onceflux.rabbit.RabbitOptions;
import io.onceflux.services.PostgresService;
import io.onceflux.services.RabbitService;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.pool.ConnectionPoolConfiguration;
import io.r2dbc.spi.ConnectionFactories;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.r2dbc.core.DatabaseClient;

class LoyaltyServiceTest {
    private static final Duration LIMIT = Duration.ofSeconds(30);

    private final String queue = "loyalty-" + System.nanoTime();
    private final List<Outcome> outcomes = new CopyOnWriteArrayList<>();
    private ConnectionPool pool;
    private DatabaseClient db;
    private Connection broker;
    private Channel channel;
    private LoyaltyService service;
    private CompletableFuture<Void> ended;

    @BeforeEach
    void start() throws Exception {
        PostgresService postgres = PostgresService.shared();
        pool = new ConnectionPool(
                ConnectionPoolConfiguration.builder(ConnectionFactories.get(postgres.r2dbcUrl(postgres.newDatabase())))
                        .maxSize(LoyaltyService.LANES + 1)
                        .build());
        db = DatabaseClient.create(pool);
        LoyaltySchema.create(pool).block();
        db.sql("INSERT INTO balances (customer_id) VALUES ('C-1'), ('C-2')")
                .then()
                .block();

        String uri = RabbitService.shared().uri();
        ConnectionFactory factory = new ConnectionFactory();
        factory.setUri(uri);
        broker = factory.newConnection();
        channel = broker.createChannel();
        RabbitOptions options = RabbitOptions.queue(queue)
                .uri(uri)
                .declare(QueueDeclaration.classic())
                .build();
        service = new LoyaltyService(options, pool);
        ended = service.run().doOnNext(outcomes::add).then().toFuture();
        await().atMost(LIMIT).ignoreExceptions().until(() -> {
            try (Channel look = broker.createChannel()) {
                return look.queueDeclarePassive(queue).getConsumerCount() == 1;
            }
        });
    }

    @AfterEach
    void stop() throws Exception {
        service.stop().block(LIMIT);
        channel.queueDelete(queue);
        channel.queueDelete(queue + ".dlq");
        broker.close();
        pool.disposeLater().block(LIMIT);
    }

    @Test
    void copiesOfAnOrderCreditItsPointsOnce() throws Exception {
        for (int copy = 0; copy < 3; copy++) {
            publish(order("A-1", "C-1", 25));
            publish(order("A-2", "C-1", 10));
            publish(order("A-3", "C-2", 5));
        }

        await().atMost(LIMIT).until(() -> outcomes.size() == 9);

        assertThat(outcomes.stream().filter(Outcome.Applied.class::isInstance)).hasSize(3);
        assertThat(outcomes.stream().filter(Outcome.Duplicate.class::isInstance))
                .hasSize(6);
        assertThat(points("C-1")).isEqualTo(35);
        assertThat(points("C-2")).isEqualTo(5);
        assertThat(ledgerRows()).isEqualTo(3);
    }

    @Test
    void anOrderThatCannotBeCreditedBecomesADeadLetterAndTheNextOneIsCredited() throws Exception {
        publish(order("A-1", "nobody", 25));
        publish("{\"orderId\": \"A-2\", \"customerId\": \"C-1\"}");
        publish("{\"orderId\": null, \"customerId\": \"C-1\", \"points\": 7}");
        publish(order("A-4", "C-1", 10));

        await().atMost(LIMIT).until(() -> outcomes.size() == 4);

        assertThat(points("C-1")).isEqualTo(10);
        assertThat(ledgerRows()).isEqualTo(1);
        await().atMost(LIMIT).until(() -> channel.messageCount(queue + ".dlq") == 3);
        GetResponse deadLetter = channel.basicGet(queue + ".dlq", true);
        Map<String, Object> headers = deadLetter.getProps().getHeaders();
        assertThat(headers.get("x-onceflux-reason")).asString().isNotBlank();
    }

    @Test
    void stoppingEndsTheRunAndLeavesNothingUnacknowledged() throws Exception {
        publish(order("A-1", "C-1", 25));
        await().atMost(LIMIT).until(() -> outcomes.size() == 1);

        service.stop().block(LIMIT);

        assertThat(ended).succeedsWithin(LIMIT);
        assertThat(channel.messageCount(queue)).isZero();
        assertThat(channel.consumerCount(queue)).isZero();
    }

    private static String order(String id, String customer, int points) {
        return "{\"orderId\": \"%s\", \"customerId\": \"%s\", \"points\": %d, \"shop\": \"new field\"}"
                .formatted(id, customer, points);
    }

    private void publish(String json) throws Exception {
        channel.basicPublish("", queue, MessageProperties.PERSISTENT_BASIC, json.getBytes(UTF_8));
    }

    private long points(String customer) {
        return db.sql("SELECT points FROM balances WHERE customer_id = :customer")
                .bind("customer", customer)
                .mapValue(Long.class)
                .one()
                .blockOptional()
                .orElseThrow();
    }

    private long ledgerRows() {
        return db.sql("SELECT count(*) FROM point_ledger")
                .mapValue(Long.class)
                .one()
                .blockOptional()
                .orElseThrow();
    }
}
