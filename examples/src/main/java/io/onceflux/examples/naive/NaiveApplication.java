package io.onceflux.examples.naive;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.pool.ConnectionPoolConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionFactoryProvider;
import io.r2dbc.spi.ConnectionFactories;
import io.r2dbc.spi.ConnectionFactoryOptions;
import java.util.Map;

/** The naive consumer as a process, with the system properties {@code naive.rabbit.uri}, {@code .queue} and {@code .postgres.url}. */
public final class NaiveApplication {

    private NaiveApplication() {}

    public static void main(String[] args) throws Exception {
        ConnectionFactory broker = new ConnectionFactory();
        broker.setUri(setting("naive.rabbit.uri"));
        ConnectionFactoryOptions options = ConnectionFactoryOptions.parse(setting("naive.postgres.url"))
                .mutate()
                .option(PostgresqlConnectionFactoryProvider.TCP_NODELAY, true)
                .build();
        ConnectionPool connections =
                new ConnectionPool(ConnectionPoolConfiguration.builder(ConnectionFactories.get(options))
                        .maxSize(NaiveConsumer.CONCURRENCY)
                        .build());
        String queue = setting("naive.queue");
        try (Connection connection = broker.newConnection();
                Channel channel = connection.createChannel()) {
            channel.queueDeclare(queue, true, false, false, Map.of());
        }
        new NaiveConsumer(queue, broker, connections).run().block();
    }

    private static String setting(String property) {
        String value = System.getProperty(property);
        if (value == null) {
            throw new IllegalStateException("Set the system property " + property + ".");
        }
        return value;
    }
}
