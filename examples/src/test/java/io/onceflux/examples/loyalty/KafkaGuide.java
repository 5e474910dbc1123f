package io.onceflux.examples.loyalty;

import static io.onceflux.examples.loyalty.LoyaltyService.JSON;
import static io.onceflux.examples.loyalty.LoyaltyService.credit;

import io.onceflux.Delivery;
import io.onceflux.IdempotentConsumer;
import io.onceflux.kafka.KafkaDeliveries;
import io.onceflux.kafka.KafkaOptions;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.pool.ConnectionPoolConfiguration;
import io.r2dbc.spi.ConnectionFactories;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import reactor.core.publisher.Mono;

/** The whole service that docs/kafka.md shows. */
final class KafkaGuide {

    private static final String DATABASE = System.getProperty("loyalty.postgres.url");
    private static final String BROKERS = System.getProperty("loyalty.kafka.bootstrap");
    private static final String TOPIC = System.getProperty("loyalty.topic");
    private static final String GROUP = System.getProperty("loyalty.group");

    private KafkaGuide() {}

    // region: kafkaService
    public static void main(String[] args) {
        ConnectionPool pool = new ConnectionPool(ConnectionPoolConfiguration.builder(ConnectionFactories.get(DATABASE))
                .maxSize(17) // one more than there are lanes: 16 by default
                .build());
        KafkaOptions topic = KafkaOptions.topic(TOPIC)
                .bootstrapServers(BROKERS)
                .groupId(GROUP)
                .property("partition.assignment.strategy", CooperativeStickyAssignor.class.getName())
                .createDeadLetterTopics()
                .build();
        IdempotentConsumer<OrderCompleted> loyalty = IdempotentConsumer.<OrderCompleted>named("loyalty")
                .identifiedBy(order -> "order-completed:" + order.orderId())
                .effect((order, db) -> credit(order, db))
                .build(pool);

        Mono<Void> end = loyalty.stop().then(pool.disposeLater());
        Runtime.getRuntime().addShutdownHook(new Thread(end::block)); // SIGTERM

        KafkaDeliveries.from(topic)
                .map(Delivery.decoding(JSON::<OrderCompleted>readValue))
                .transform(loyalty)
                .then()
                .block(); // until it is stopped; a wrong set-up is thrown here
    }
    // endregion
}
