package io.onceflux.chaos.consumer;

import com.rabbitmq.client.ConnectionFactory;
import io.onceflux.ConsumerBuilder;
import io.onceflux.Delivery;
import io.onceflux.FailurePolicy;
import io.onceflux.IdempotentConsumer;
import io.onceflux.chaos.consumer.Variant.Incoming;
import io.onceflux.kafka.KafkaDeliveries;
import io.onceflux.kafka.KafkaOptions;
import io.onceflux.postgres.DeadLetterTable;
import io.onceflux.rabbit.RabbitDeliveries;
import io.onceflux.rabbit.RabbitOptions;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.pool.ConnectionPoolConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionFactoryProvider;
import io.r2dbc.spi.ConnectionFactories;
import io.r2dbc.spi.ConnectionFactoryOptions;
import java.time.Duration;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.publisher.Flux;

/**
 * A consumer as a process, with short limits. It stops in good order on SIGTERM.
 *
 * <p>Arguments: the variant, the broker's URI, the queue, the database's URL, the place of dead letters, and {@code maxBatch}.
 */
public final class ChaosConsumer {

    /** Part of every claim. */
    public static final String NAME = "chaos";

    /** What the address of a Kafka begins with. */
    public static final String KAFKA = "kafka://";

    /** The header that has the id of a record. */
    public static final String ID = "message-id";

    private static final Logger log = LoggerFactory.getLogger(ChaosConsumer.class);
    private static final int LANES = 6;
    private static final Duration PATIENCE = Duration.ofMinutes(5);

    private ChaosConsumer() {}

    public static void main(String[] args) throws Exception {
        Variant variant = Variant.valueOf(args[0]);
        Flux<Delivery<byte[]>> deliveries =
                args[1].startsWith(KAFKA) ? fromTopic(args[1], args[2], variant) : fromQueue(args[1], args[2]);
        io.r2dbc.spi.ConnectionFactory database = database(args[3]);
        ConnectionPool connections = new ConnectionPool(ConnectionPoolConfiguration.builder(database)
                .initialSize(0)
                .maxSize(LANES + 1)
                .build());
        ConsumerBuilder<Incoming> builder = variant.configure(
                IdempotentConsumer.<Incoming>named(NAME)
                        .identifiedByMessageId()
                        .lanes(LANES)
                        .maxBatch(Integer.parseInt(args[5]))
                        .maxInFlight(64)
                        .timeLimit(Duration.ofSeconds(4))
                        .lockTimeout(Duration.ofSeconds(1))
                        .controlLimit(Duration.ofSeconds(2))
                        .settleLimit(Duration.ofSeconds(3))
                        .startLimit(PATIENCE)
                        .failurePolicy(FailurePolicy.builder()
                                .backoff(Duration.ofMillis(50), Duration.ofMillis(500))
                                .build())
                        .listener(new EventLog()),
                database);
        if (DeadLetterPlace.valueOf(args[4]) == DeadLetterPlace.TABLE) {
            builder.deadLetterTable(DeadLetterTable.deadLetters());
        }
        IdempotentConsumer<Incoming> consumer = builder.build(connections);
        Runtime.getRuntime()
                .addShutdownHook(new Thread(() -> consumer.stop(Duration.ofSeconds(10))
                        .then(connections.disposeLater())
                        .block()));
        run(deliveries.index(Incoming::from).transform(consumer));
    }

    private static Flux<Delivery<byte[]>> fromQueue(String uri, String queue) throws Exception {
        return RabbitDeliveries.from(RabbitOptions.queue(queue)
                .connectionFactory(broker(uri))
                .backoff(Duration.ofMillis(100), Duration.ofSeconds(1))
                .startLimit(PATIENCE)
                .confirmLimit(Duration.ofSeconds(2))
                .build());
    }

    private static Flux<Delivery<byte[]>> fromTopic(String address, String topic, Variant variant) {
        KafkaOptions.Builder options = KafkaOptions.topic(topic);
        if (variant.goesByPosition()) {
            options.messageIdFromPosition();
        } else {
            options.messageIdFromHeader(ID);
        }
        return KafkaDeliveries.from(options.bootstrapServers(address.substring(KAFKA.length()))
                .groupId(topic)
                .property("partition.assignment.strategy", CooperativeStickyAssignor.class.getName())
                .property("session.timeout.ms", 3_000)
                .property("heartbeat.interval.ms", 500)
                .property("reconnect.backoff.max.ms", 200)
                .drainLimit(Duration.ofSeconds(3))
                .backoff(Duration.ofMillis(100), Duration.ofSeconds(1))
                .startLimit(PATIENCE)
                .confirmLimit(Duration.ofSeconds(2))
                .build());
    }

    private static void run(Flux<?> outcomes) {
        try {
            outcomes.then().block();
        } catch (RuntimeException e) {
            // The client's threads would keep the process alive, and the rig would wait for a consumer that consumes
            // nothing.
            log.error("This consumer has ended", e);
            System.exit(1);
        }
    }

    private static ConnectionFactory broker(String uri) throws Exception {
        ConnectionFactory factory = new ConnectionFactory();
        factory.setUri(uri);
        factory.setRequestedHeartbeat(2);
        factory.setConnectionTimeout(2_000);
        factory.setHandshakeTimeout(2_000);
        return factory;
    }

    private static io.r2dbc.spi.ConnectionFactory database(String url) {
        return ConnectionFactories.get(ConnectionFactoryOptions.parse(url)
                .mutate()
                .option(PostgresqlConnectionFactoryProvider.TCP_NODELAY, true)
                .option(ConnectionFactoryOptions.CONNECT_TIMEOUT, Duration.ofSeconds(2))
                .build());
    }
}
