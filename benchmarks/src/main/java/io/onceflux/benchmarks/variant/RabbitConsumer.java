package io.onceflux.benchmarks.variant;

import io.onceflux.Claims;
import io.onceflux.Delivery;
import io.onceflux.IdempotentConsumer;
import io.onceflux.benchmarks.scenario.Credit;
import io.onceflux.benchmarks.scenario.Order;
import io.onceflux.benchmarks.scenario.Orders;
import io.onceflux.benchmarks.scenario.Site;
import io.onceflux.postgres.ClaimTable;
import io.onceflux.rabbit.RabbitDeliveries;
import io.onceflux.rabbit.RabbitOptions;
import io.r2dbc.pool.ConnectionPool;
import org.jspecify.annotations.Nullable;
import reactor.core.Disposable;

/** OnceFlux from RabbitMQ into the database. */
final class RabbitConsumer extends FromBroker {

    private final ConnectionPool connections;
    private final IdempotentConsumer<Order> consumer;
    private final RabbitOptions options;
    private @Nullable Disposable running;

    RabbitConsumer(Case what, Site site) {
        super(new BrokerQueue(site, new Orders(what.duplicates())), site, true);
        this.connections = Connections.pool(site, what.lanes());
        this.consumer = FromMemory.describe(what, Claims.in(ClaimTable.processedMessages()), Credit::one)
                .build(connections);
        this.options = RabbitOptions.queue(site.queue())
                .connectionFactory(BrokerQueue.factory(site))
                .build();
    }

    @Override
    void connect() {
        running = RabbitDeliveries.from(options)
                .map(Delivery.decoding(Order::fromJson))
                .transform(consumer)
                .subscribe(this::oneDone, this::failed);
    }

    @Override
    void disconnect() {
        Disposable consuming = running;
        if (consuming != null) {
            consuming.dispose();
        }
    }

    @Override
    public void close() {
        connections.dispose();
        super.close();
    }
}
