package io.onceflux.examples.loyalty;

import io.onceflux.DeadLetters;
import io.onceflux.Delivery;
import io.onceflux.kafka.KafkaDeadLetters;
import io.onceflux.kafka.KafkaDeliveries;
import io.onceflux.kafka.KafkaOptions;
import io.onceflux.rabbit.QueueDeclaration;
import io.onceflux.rabbit.RabbitDeadLetters;
import io.onceflux.rabbit.RabbitDeliveries;
import io.onceflux.rabbit.RabbitOptions;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.pool.ConnectionPoolConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionFactoryProvider;
import io.r2dbc.spi.ConnectionFactories;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.ConnectionFactoryOptions;
import java.util.Locale;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;

/**
 * The loyalty service as a process. It ends cleanly on SIGTERM: what is at work is committed and acknowledged first.
 *
 * <p>Its settings are environment variables, or system properties of the same name in lower case with dots:
 * {@code LOYALTY_POSTGRES_URL} ({@code r2dbc:postgresql://user:password@host:port/database}), and {@code LOYALTY_RABBIT_URI} and {@code
 * LOYALTY_QUEUE}, or {@code LOYALTY_KAFKA_BOOTSTRAP}, {@code LOYALTY_TOPIC} and {@code LOYALTY_GROUP}.
 */
public final class LoyaltyApplication {

    /** So long Kafka waits for an instance that was killed, before another takes its partitions over. */
    private static final int SESSION_MILLIS = 6_000;

    private LoyaltyApplication() {}

    public static void main(String[] args) {
        Flux<Delivery<byte[]>> orders = orders();
        ConnectionPool connections = connections();
        LoyaltyService service = new LoyaltyService(orders, connections);
        Runtime.getRuntime()
                .addShutdownHook(new Thread(
                        () -> service.stop().then(connections.disposeLater()).block(), "loyalty-stop"));
        service.run().then().block();
    }

    // region: sources
    /** The orders that the shop has completed, from wherever it sends them. */
    private static Flux<Delivery<byte[]>> orders() {
        return isOverKafka() ? KafkaDeliveries.from(topic()) : RabbitDeliveries.from(queue());
    }
    // endregion

    // region: deadLetters
    /** Those that could not be credited, for list() and replay(which, perSecond). What was credited meanwhile is then a duplicate. */
    static DeadLetters deadLetters() {
        return isOverKafka() ? KafkaDeadLetters.of(topic()) : RabbitDeadLetters.of(queue());
    }
    // endregion

    private static boolean isOverKafka() {
        return valueOf("LOYALTY_KAFKA_BOOTSTRAP") != null;
    }

    private static KafkaOptions topic() {
        return KafkaOptions.topic(setting("LOYALTY_TOPIC"))
                .bootstrapServers(setting("LOYALTY_KAFKA_BOOTSTRAP"))
                .groupId(setting("LOYALTY_GROUP"))
                .property("partition.assignment.strategy", CooperativeStickyAssignor.class.getName())
                .property("session.timeout.ms", SESSION_MILLIS)
                .createDeadLetterTopics()
                .build();
    }

    private static RabbitOptions queue() {
        return RabbitOptions.queue(setting("LOYALTY_QUEUE"))
                .uri(setting("LOYALTY_RABBIT_URI"))
                .declare(QueueDeclaration.classic())
                .build();
    }

    /** One connection a lane, and one to probe the database. */
    private static ConnectionPool connections() {
        return new ConnectionPool(ConnectionPoolConfiguration.builder(database())
                .maxSize(LoyaltyService.LANES + 1)
                .build());
    }

    /** Without TCP_NODELAY a third of the throughput is lost. */
    static ConnectionFactory database() {
        return ConnectionFactories.get(ConnectionFactoryOptions.parse(setting("LOYALTY_POSTGRES_URL"))
                .mutate()
                .option(PostgresqlConnectionFactoryProvider.TCP_NODELAY, true)
                .build());
    }

    private static String setting(String variable) {
        String value = valueOf(variable);
        if (value == null) {
            throw new IllegalStateException(
                    "Set " + variable + " (or the system property " + propertyOf(variable) + ").");
        }
        return value;
    }

    private static @Nullable String valueOf(String variable) {
        return System.getProperty(propertyOf(variable), System.getenv(variable));
    }

    private static String propertyOf(String variable) {
        return variable.toLowerCase(Locale.ROOT).replace('_', '.');
    }
}
