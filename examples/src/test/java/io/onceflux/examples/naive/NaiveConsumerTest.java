package io.onceflux.examples.naive;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.MessageProperties;
import io.onceflux.services.PostgresService;
import io.onceflux.services.RabbitService;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.pool.ConnectionPoolConfiguration;
import io.r2dbc.spi.ConnectionFactories;
import java.time.Duration;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.springframework.core.io.ClassPathResource;
import org.springframework.r2dbc.connection.init.ScriptUtils;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

class NaiveConsumerTest {
    private static final Duration LIMIT = Duration.ofSeconds(30);
    private static final int ORDERS = 100;

    @Test
    void twoInstancesThatGetACopyEachCreditSomeOrdersTwice() throws Exception {
        PostgresService postgres = PostgresService.shared();
        ConnectionPool pool = new ConnectionPool(
                ConnectionPoolConfiguration.builder(ConnectionFactories.get(postgres.r2dbcUrl(postgres.newDatabase())))
                        .initialSize(32)
                        .maxSize(32)
                        .build());
        Mono.usingWhen(
                        pool.create(),
                        connection -> ScriptUtils.executeSqlScript(
                                connection, new ClassPathResource("naive.sql", NaiveConsumer.class)),
                        io.r2dbc.spi.Connection::close)
                .block();
        DatabaseClient db = DatabaseClient.create(pool);
        db.sql("INSERT INTO naive_balances (customer_id) VALUES ('C-1')").then().block();
        ConnectionFactory factory = new ConnectionFactory();
        factory.setUri(RabbitService.shared().uri());
        String queue = "naive-" + System.nanoTime();
        try (Connection broker = factory.newConnection();
                Channel channel = broker.createChannel()) {
            channel.queueDeclare(queue, true, false, false, Map.of());
            Disposable instances = Flux.range(1, 2)
                    .flatMap(instance -> new NaiveConsumer(pool).run(queue, factory))
                    .subscribe();
            await().atMost(LIMIT).until(() -> channel.consumerCount(queue) == 2);

            for (int order : IntStream.range(0, ORDERS).toArray()) {
                byte[] json = "{\"orderId\": \"A-%d\", \"customerId\": \"C-1\", \"points\": 1}"
                        .formatted(order)
                        .getBytes(UTF_8);
                channel.basicPublish("", queue, MessageProperties.PERSISTENT_BASIC, json);
                channel.basicPublish("", queue, MessageProperties.PERSISTENT_BASIC, json);
            }

            await().atMost(LIMIT)
                    .until(() -> number(db, "SELECT count(DISTINCT order_id) FROM naive_point_ledger") == ORDERS);
            assertThat(number(db, "SELECT points FROM naive_balances")).isGreaterThan(ORDERS);
            assertThat(number(db, "SELECT count(*) FROM naive_point_ledger")).isGreaterThan(ORDERS);
            instances.dispose();
            channel.queueDelete(queue);
        }
        pool.disposeLater().block(LIMIT);
    }

    private static long number(DatabaseClient db, String sql) {
        return db.sql(sql).mapValue(Long.class).one().blockOptional().orElseThrow();
    }
}
