package io.onceflux.examples.loyalty;

import io.onceflux.rabbit.QueueDeclaration;
import io.onceflux.rabbit.RabbitOptions;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.pool.ConnectionPoolConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionFactoryProvider;
import io.r2dbc.spi.ConnectionFactories;
import io.r2dbc.spi.ConnectionFactoryOptions;
import java.util.Locale;

/**
 * The loyalty service as a process. It ends cleanly on SIGTERM: what is at work is committed and acknowledged first.
 *
 * <p>Its settings are environment variables, or system properties of the same name in lower case with dots:
 * {@code LOYALTY_RABBIT_URI}, {@code LOYALTY_QUEUE} and {@code LOYALTY_POSTGRES_URL}
 * ({@code r2dbc:postgresql://user:password@host:port/database}).
 */
public final class LoyaltyApplication {

    private LoyaltyApplication() {}

    public static void main(String[] args) {
        RabbitOptions queue = queue();
        ConnectionPool connections = connections(setting("LOYALTY_POSTGRES_URL"));
        LoyaltyService service = new LoyaltyService(queue, connections);
        Runtime.getRuntime()
                .addShutdownHook(new Thread(
                        () -> service.stop().then(connections.disposeLater()).block(), "loyalty-stop"));
        service.run().then().block();
    }

    static RabbitOptions queue() {
        return RabbitOptions.queue(setting("LOYALTY_QUEUE"))
                .uri(setting("LOYALTY_RABBIT_URI"))
                .declare(QueueDeclaration.classic())
                .build();
    }

    /** One connection a lane, and one to probe the database. Without TCP_NODELAY a third of the throughput is lost. */
    private static ConnectionPool connections(String url) {
        ConnectionFactoryOptions options = ConnectionFactoryOptions.parse(url)
                .mutate()
                .option(PostgresqlConnectionFactoryProvider.TCP_NODELAY, true)
                .build();
        return new ConnectionPool(ConnectionPoolConfiguration.builder(ConnectionFactories.get(options))
                .maxSize(LoyaltyService.LANES + 1)
                .build());
    }

    private static String setting(String variable) {
        String property = variable.toLowerCase(Locale.ROOT).replace('_', '.');
        String value = System.getProperty(property, System.getenv(variable));
        if (value == null) {
            throw new IllegalStateException("Set " + variable + " (or the system property " + property + ").");
        }
        return value;
    }
}
