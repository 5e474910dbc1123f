package io.onceflux.benchmarks.variant;

import io.onceflux.Claims;
import io.onceflux.ConsumerBuilder;
import io.onceflux.Delivery;
import io.onceflux.IdempotentConsumer;
import io.onceflux.benchmarks.scenario.Credit;
import io.onceflux.benchmarks.scenario.Order;
import io.onceflux.benchmarks.scenario.Orders;
import io.onceflux.benchmarks.scenario.Site;
import io.onceflux.kafka.KafkaDeliveries;
import io.onceflux.kafka.KafkaOptions;
import io.onceflux.kafka.OffsetFence;
import io.onceflux.postgres.ClaimTable;
import io.onceflux.postgres.OffsetTable;
import io.r2dbc.pool.ConnectionPool;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import reactor.core.Disposable;

/** OnceFlux from Kafka into the database. A stopped consumer does not start again, so each turn has one of its own. */
final class KafkaConsumer extends FromBroker {

    private static final Duration LIMIT = Duration.ofSeconds(60);

    private final Case what;
    private final ConnectionPool connections;
    private final KafkaOptions options;
    private @Nullable IdempotentConsumer<Order> consumer;
    private @Nullable Disposable running;

    KafkaConsumer(Case what, Site site) {
        super(new BrokerTopic(site, new Orders(what.duplicates())), site, !isFenced(what));
        this.what = what;
        this.connections = Connections.pool(site, what.lanes());
        KafkaOptions.Builder topic = KafkaOptions.topic(site.topic())
                .bootstrapServers(site.kafkaBootstrap())
                .groupId(site.topic());
        this.options = (isFenced(what) ? topic.messageIdFromPosition() : topic).build();
        if (isFenced(what)) {
            OffsetTable.consumerOffsets().create(connections).block(LIMIT);
        }
    }

    private static boolean isFenced(Case what) {
        return what.way() == Way.KAFKA_FENCED;
    }

    private IdempotentConsumer<Order> describe() {
        ConsumerBuilder<Order> description = isFenced(what)
                ? FromMemory.describeUnordered(what, OffsetFence.in(OffsetTable.consumerOffsets()), Credit::one)
                        .identifiedByMessageId()
                : FromMemory.describe(what, Claims.in(ClaimTable.processedMessages()), Credit::one);
        return description.build(connections);
    }

    @Override
    void connect() {
        IdempotentConsumer<Order> started = describe();
        consumer = started;
        running = KafkaDeliveries.from(options)
                .map(Delivery.decoding(Order::fromJson))
                .transform(started)
                .subscribe(this::oneDone, this::failed);
    }

    /** What is done is committed then, so that it does not come again. */
    @Override
    void disconnect() {
        IdempotentConsumer<Order> stopping = consumer;
        if (stopping != null) {
            stopping.stop().block(LIMIT);
        }
    }

    @Override
    public void close() {
        if (running != null) {
            running.dispose();
        }
        connections.dispose();
        super.close();
    }
}
