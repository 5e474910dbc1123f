package io.onceflux.examples.loyalty;

import static io.onceflux.testkit.OnceFluxAssertions.assertRollsBack;
import static io.onceflux.testkit.OnceFluxAssertions.assertThat;
import static org.assertj.core.api.Assertions.assertThat;

import io.onceflux.Delivery;
import io.onceflux.IdempotentConsumer;
import io.onceflux.Outcome;
import io.onceflux.services.PostgresService;
import io.onceflux.testkit.DuplicatingSource;
import io.onceflux.testkit.InMemoryDatabase;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.pool.ConnectionPoolConfiguration;
import io.r2dbc.spi.ConnectionFactories;
import io.r2dbc.spi.ConnectionFactory;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.publisher.Mono;

/** What docs/testing.md shows, with the effect of the loyalty service. */
class KitGuideTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);

    private final PostgresService postgres = PostgresService.shared();
    private final ConnectionPool pool = new ConnectionPool(
            ConnectionPoolConfiguration.builder(ConnectionFactories.get(postgres.r2dbcUrl(postgres.newDatabase())))
                    .maxSize(20)
                    .build());
    private final DatabaseClient db = DatabaseClient.create(pool);

    @BeforeEach
    void create() {
        LoyaltySchema.create(pool).block(LIMIT);
        db.sql("INSERT INTO balances (customer_id) VALUES ('anna')").then().block(LIMIT);
    }

    @AfterEach
    void close() {
        pool.disposeLater().block(LIMIT);
    }

    private @Nullable Long pointsOfAnna() {
        return db.sql("SELECT points FROM balances WHERE customer_id = 'anna'")
                .mapValue(Long.class)
                .one()
                .block(LIMIT);
    }

    private static IdempotentConsumer<OrderCompleted> loyalty(ConnectionFactory connections) {
        return IdempotentConsumer.<OrderCompleted>named("loyalty")
                .identifiedBy(OrderCompleted::orderId)
                .orderedBy(OrderCompleted::customerId)
                .effect(LoyaltyService::credit)
                .build(connections);
    }

    // region: kitAssertions
    @Test
    void anOrderIsCreditedOnceAndAllOfItIsInTheTransaction() {
        OrderCompleted order = new OrderCompleted("A-1", "anna", 25);

        assertRollsBack(LoyaltyService::credit, order, pool);
        assertThat(loyalty(pool)).appliesOnce(order);
        assertThat(pointsOfAnna()).isEqualTo(25);
    }
    // endregion

    // region: kitSource
    @Test
    void theBooksAreExactWhateverTheBrokerAndTheConnectionsDo() {
        List<OrderCompleted> orders = IntStream.range(0, 200)
                .mapToObj(n -> new OrderCompleted("A-" + n, "anna", 10))
                .toList();
        DuplicatingSource<OrderCompleted> source =
                DuplicatingSource.of(orders).seed(7).copies(3).reordering(20).breaking(0.05);
        ConnectionFactory breaking = source.crashing(pool);

        source.deliveries().transform(loyalty(breaking)).then().block(LIMIT);

        assertThat(pointsOfAnna()).isEqualTo(2_000);
    }
    // endregion

    @Test
    void withoutADatabase() {
        List<String> sent = new CopyOnWriteArrayList<>();
        // region: kitInMemory
        InMemoryDatabase database = InMemoryDatabase.empty();
        IdempotentConsumer<String> consumer = IdempotentConsumer.<String>named("mails")
                .identifiedByMessageId()
                .claims(database.claims())
                .effect((mail, db) -> Mono.fromRunnable(() -> sent.add(mail)))
                .build(database);
        // endregion
        assertThat(consumer.process(Delivery.of("1", "hello")).block(LIMIT)).isInstanceOf(Outcome.Applied.class);
        assertThat(consumer.process(Delivery.of("1", "hello")).block(LIMIT)).isInstanceOf(Outcome.Duplicate.class);
        assertThat(sent).containsExactly("hello");
    }
}
