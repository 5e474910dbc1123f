package io.onceflux.benchmarks.variant;

import io.onceflux.Claims;
import io.onceflux.Delivery;
import io.onceflux.IdempotentConsumer;
import io.onceflux.Outcome;
import io.onceflux.benchmarks.scenario.Credit;
import io.onceflux.benchmarks.scenario.Order;
import io.onceflux.benchmarks.scenario.Site;
import io.onceflux.kafka.KafkaDeliveries;
import io.onceflux.kafka.KafkaOptions;
import io.onceflux.postgres.ClaimTable;
import io.r2dbc.pool.ConnectionPool;
import java.time.Duration;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;

/** Group commit from a topic that others consume too. */
public final class CountingConsumer implements AutoCloseable {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final Case WHAT = Case.parse("kafka-grouped");

    private final ConnectionPool connections;
    private final IdempotentConsumer<Order> consumer;
    private final KafkaOptions options;
    private final LongAdder applied = new LongAdder();
    private final LongAdder duplicates = new LongAdder();

    public CountingConsumer(Site site) {
        this.connections = Connections.pool(site, WHAT.lanes());
        this.consumer = FromMemory.describe(WHAT, Claims.in(ClaimTable.processedMessages()), Credit::one)
                .build(connections);
        this.options = KafkaOptions.topic(site.topic())
                .bootstrapServers(site.kafkaBootstrap())
                .groupId(site.topic())
                .property("partition.assignment.strategy", CooperativeStickyAssignor.class.getName())
                .build();
    }

    /** Consumes until it is closed. Blocks. */
    public void run() {
        KafkaDeliveries.from(options)
                .map(Delivery.decoding(Order::fromJson))
                .transform(consumer)
                .doOnNext(this::count)
                .then()
                .block();
    }

    private void count(Outcome outcome) {
        (outcome instanceof Outcome.Duplicate ? duplicates : applied).increment();
    }

    public long applied() {
        return applied.sum();
    }

    public long duplicates() {
        return duplicates.sum();
    }

    @Override
    public void close() {
        consumer.stop().block(LIMIT);
        connections.disposeLater().block(LIMIT);
    }
}
