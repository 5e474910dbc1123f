package io.onceflux.examples.loyalty;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationHandler;
import io.micrometer.observation.ObservationRegistry;
import io.micrometer.observation.ObservationView;
import io.micrometer.observation.transport.ReceiverContext;
import io.micrometer.observation.transport.SenderContext;
import io.onceflux.Delivery;
import io.onceflux.IdempotentConsumer;
import io.onceflux.Outcome;
import io.onceflux.micrometer.MessageObservations;
import io.onceflux.micrometer.TraceHeaders;
import io.onceflux.outbox.Outbox;
import io.onceflux.outbox.OutboxEntry;
import io.onceflux.outbox.OutboxMessage;
import io.onceflux.outbox.Relay;
import io.onceflux.postgres.ClaimTable;
import io.onceflux.postgres.OutboxTable;
import io.onceflux.services.PostgresService;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.pool.ConnectionPoolConfiguration;
import io.r2dbc.spi.ConnectionFactories;
import io.r2dbc.spi.ConnectionFactory;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.publisher.Mono;

/** What docs/operating.md shows of traces. */
class TracingGuideTest {

    private static final Duration LIMIT = Duration.ofSeconds(30);

    private final PostgresService postgres = PostgresService.shared();
    private final ConnectionPool pool = new ConnectionPool(
            ConnectionPoolConfiguration.builder(ConnectionFactories.get(postgres.r2dbcUrl(postgres.newDatabase())))
                    .maxSize(20)
                    .build());

    @BeforeEach
    void create() {
        ClaimTable.processedMessages().create(pool).block(LIMIT);
        OutboxTable.outbox().create(pool).block(LIMIT);
    }

    @AfterEach
    void close() {
        pool.disposeLater().block(LIMIT);
    }

    private static Mono<Void> credit(OrderCompleted order, DatabaseClient db) {
        return db.sql("SELECT :points").bind("points", order.points()).then();
    }

    private static byte[] json(OrderCompleted order) {
        return order.orderId().getBytes(UTF_8);
    }

    /** In the place of a tracer: sends the name of the parent on. */
    private static final class ParentsName implements ObservationHandler<Observation.Context> {

        final List<String> started = new CopyOnWriteArrayList<>();

        @Override
        public void onStart(Observation.Context context) {
            started.add(context.getName() + (context instanceof ReceiverContext ? " of a message" : ""));
            if (context instanceof SenderContext<?> sender) {
                inject(sender, Objects.requireNonNull(context.getParentObservation()));
            }
        }

        private static <C> void inject(SenderContext<C> sender, ObservationView parent) {
            sender.getSetter()
                    .set(
                            sender.getCarrier(),
                            "parent",
                            String.valueOf(parent.getContextView().getContextualName()));
        }

        @Override
        public boolean supportsContext(Observation.Context context) {
            return true;
        }
    }

    @Test
    void whatAnEffectAppendsGoesOnFromItsMessage() {
        ObservationRegistry observations = ObservationRegistry.create();
        ParentsName tracer = new ParentsName();
        observations.observationConfig().observationHandler(tracer);
        ConnectionFactory connections = pool;
        // region: tracedOutbox
        Outbox outbox = Outbox.in(OutboxTable.outbox()).headers(TraceHeaders.in(observations));
        // endregion
        // region: tracing
        IdempotentConsumer<OrderCompleted> loyalty = IdempotentConsumer.<OrderCompleted>named("loyalty")
                .identifiedBy(OrderCompleted::orderId)
                .observer(MessageObservations.in(observations))
                .effect((order, db) -> credit(order, db)
                        .then(outbox.append(db, OutboxEntry.of("receipt", order.customerId(), json(order)))))
                .build(connections);
        // endregion
        Outcome outcome = loyalty.process(Delivery.of(null, new OrderCompleted("A-1", "anna", 10)))
                .block(LIMIT);
        List<OutboxMessage> sent = new CopyOnWriteArrayList<>();
        Relay.of(outbox)
                .to("receipt", message -> Mono.fromRunnable(() -> sent.add(message)))
                .build(connections)
                .run()
                .next()
                .then()
                .block(LIMIT);

        assertThat(outcome).isInstanceOf(Outcome.Applied.class);
        assertThat(tracer.started).containsExactly("onceflux.process of a message", "onceflux.append");
        assertThat(sent)
                .singleElement()
                .satisfies(message -> assertThat(message.headers()).containsEntry("parent", "process loyalty"));
    }
}
