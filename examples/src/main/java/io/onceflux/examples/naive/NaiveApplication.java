package io.onceflux.examples.naive;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.pool.ConnectionPoolConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionFactoryProvider;
import io.r2dbc.spi.ConnectionFactories;
import io.r2dbc.spi.ConnectionFactoryOptions;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import reactor.core.publisher.Mono;
import reactor.kafka.receiver.ReceiverOptions;

/**
 * The naive consumer as a process, with the system properties {@code naive.postgres.url}, and {@code naive.rabbit.uri} and {@code .queue}, or
 * {@code naive.kafka.bootstrap}, {@code .topic} and {@code .group}.
 */
public final class NaiveApplication {

    private static final int SESSION_MILLIS = 6_000;

    private NaiveApplication() {}

    public static void main(String[] args) throws Exception {
        ConnectionFactoryOptions options = ConnectionFactoryOptions.parse(setting("naive.postgres.url"))
                .mutate()
                .option(PostgresqlConnectionFactoryProvider.TCP_NODELAY, true)
                .build();
        ConnectionPool connections =
                new ConnectionPool(ConnectionPoolConfiguration.builder(ConnectionFactories.get(options))
                        .maxSize(NaiveConsumer.CONCURRENCY)
                        .build());
        NaiveConsumer consumer = new NaiveConsumer(connections);
        Mono<Void> run =
                System.getProperty("naive.kafka.bootstrap") == null ? fromQueue(consumer) : consumer.run(topic());
        run.block();
    }

    private static Mono<Void> fromQueue(NaiveConsumer consumer) throws Exception {
        ConnectionFactory broker = new ConnectionFactory();
        broker.setUri(setting("naive.rabbit.uri"));
        String queue = setting("naive.queue");
        try (Connection connection = broker.newConnection();
                Channel channel = connection.createChannel()) {
            channel.queueDeclare(queue, true, false, false, Map.of());
        }
        return consumer.run(queue, broker);
    }

    private static ReceiverOptions<byte[], byte[]> topic() {
        return ReceiverOptions.<byte[], byte[]>create()
                .consumerProperty(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, setting("naive.kafka.bootstrap"))
                .consumerProperty(ConsumerConfig.GROUP_ID_CONFIG, setting("naive.group"))
                .consumerProperty(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest")
                .consumerProperty(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG, SESSION_MILLIS)
                .consumerProperty(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class)
                .consumerProperty(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class)
                .commitInterval(Duration.ofMillis(200))
                .maxDeferredCommits(1_000)
                .subscription(List.of(setting("naive.topic")));
    }

    private static String setting(String property) {
        String value = System.getProperty(property);
        if (value == null) {
            throw new IllegalStateException("Set the system property " + property + ".");
        }
        return value;
    }
}
