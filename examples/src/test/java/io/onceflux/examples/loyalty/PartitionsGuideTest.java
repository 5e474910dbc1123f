package io.onceflux.examples.loyalty;

import static org.assertj.core.api.Assertions.assertThat;

import io.onceflux.Admissions;
import io.onceflux.Claims;
import io.onceflux.Delivery;
import io.onceflux.IdempotentConsumer;
import io.onceflux.MessageKey;
import io.onceflux.Outcome;
import io.onceflux.Retention;
import io.onceflux.Settlement;
import io.onceflux.postgres.AdmissionTable;
import io.onceflux.postgres.Buckets;
import io.onceflux.postgres.ClaimTable;
import io.onceflux.services.PostgresService;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.pool.ConnectionPoolConfiguration;
import io.r2dbc.spi.ConnectionFactories;
import io.r2dbc.spi.ConnectionFactory;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.Disposable;
import reactor.core.publisher.Mono;

/** What docs/choosing.md shows of claims in partitions, and of messages that are too old. */
class PartitionsGuideTest {

    private static final Logger log = LoggerFactory.getLogger(PartitionsGuideTest.class);
    private static final Duration LIMIT = Duration.ofSeconds(30);

    private final PostgresService postgres = PostgresService.shared();
    private final ConnectionPool pool = new ConnectionPool(
            ConnectionPoolConfiguration.builder(ConnectionFactories.get(postgres.r2dbcUrl(postgres.newDatabase())))
                    .maxSize(20)
                    .build());
    private final DatabaseClient db = DatabaseClient.create(pool);

    private record Order(String number, Instant placedAt) {}

    @BeforeEach
    void create() {
        db.sql("CREATE TABLE ledger (number text NOT NULL)").then().block(LIMIT);
    }

    @AfterEach
    void close() {
        pool.disposeLater().block(LIMIT);
    }

    private static Mono<Void> credit(Order order, DatabaseClient db) {
        return db.sql("INSERT INTO ledger VALUES (:number)")
                .bind("number", order.number())
                .then();
    }

    @Test
    void anOrderIsCreditedOnceAndOneFromBeforeTheOldestPartitionIsNot() {
        ConnectionFactory connections = pool;
        // region: partitions
        ClaimTable table = ClaimTable.processedMessages().partitionedBy(Buckets.daily());
        Retention retention = Retention.of(table, Duration.ofDays(30));

        IdempotentConsumer<Order> loyalty = IdempotentConsumer.<Order>named("loyalty")
                .identifiedBy(Order::number)
                .claimTable(table)
                .bucketedBy(Order::placedAt) // never another for the same number
                .retention(retention)
                .redeliveryWindow(Duration.ofDays(29))
                .effect((order, db) -> credit(order, db))
                .build(connections);
        // endregion
        table.create(connections).block(LIMIT);
        // region: partitionsRetention
        retention.run(connections).then().block(); // before the consumer starts: there is a partition for each day then
        Disposable cleaning = retention
                .every(Duration.ofHours(1), connections, error -> log.warn("the retention has failed", error))
                .subscribe();
        // endregion
        Order order = new Order("A-1", Instant.now());

        assertThat(process(loyalty, order)).isInstanceOf(Outcome.Applied.class);
        assertThat(process(loyalty, order)).isInstanceOf(Outcome.Duplicate.class);
        assertThat(process(loyalty, new Order("A-0", Instant.now().minus(Duration.ofDays(40)))))
                .isInstanceOf(Outcome.Failed.class);
        assertThat(credited()).containsExactly("A-1");
        cleaning.dispose();
        loyalty.stop().block(LIMIT);
    }

    @Test
    void whatIsTooOldIsCreditedOnceSomebodyHasAdmittedIt() {
        ConnectionFactory connections = pool;
        ClaimTable.processedMessages().create(connections).block(LIMIT);
        AdmissionTable.admittedMessages().create(connections).block(LIMIT);
        // region: admissions
        IdempotentConsumer<Order> loyalty = IdempotentConsumer.<Order>named("loyalty")
                .identifiedBy(Order::number)
                .sentAt(Order::placedAt)
                .redeliveryWindow(Duration.ofDays(7))
                .admissionTable(AdmissionTable.admittedMessages())
                .effect((order, db) -> credit(order, db))
                .build(connections);
        // endregion
        Order order = new Order("A-1", Instant.now().minus(Duration.ofDays(9)));
        assertThat(process(loyalty, order)).isInstanceOf(Outcome.Failed.class);
        // region: admit
        Boolean first = Admissions.in(AdmissionTable.admittedMessages(), connections)
                .admit(MessageKey.of("loyalty", "A-1"), "anna", "INC-7: the service was off; not in the ledger")
                .block();
        // endregion
        assertThat(first).isTrue();

        assertThat(process(loyalty, order)).isInstanceOf(Outcome.Applied.class);
        assertThat(process(loyalty, order)).isInstanceOf(Outcome.Duplicate.class);
        assertThat(credited()).containsExactly("A-1");
    }

    @Test
    void whatWasClaimedInTheOldTableIsADuplicateInBoth() {
        ClaimTable old = ClaimTable.named("inbox");
        ClaimTable table = ClaimTable.processedMessages().partitionedBy(Buckets.daily());
        old.create(pool).then(table.create(pool)).block(LIMIT);
        Retention.of(table, Duration.ofDays(30)).run(pool).then().block(LIMIT);
        Order order = new Order("A-1", Instant.now());
        IdempotentConsumer<Order> before = IdempotentConsumer.<Order>named("loyalty")
                .identifiedBy(Order::number)
                .claimTable(old)
                .effect(PartitionsGuideTest::credit)
                .build(pool);
        assertThat(process(before, order)).isInstanceOf(Outcome.Applied.class);

        IdempotentConsumer<Order> meanwhile = IdempotentConsumer.<Order>named("loyalty")
                .identifiedBy(Order::number)
                .claims(Claims.moving(Claims.in(old), Claims.in(table)))
                .bucketedBy(Order::placedAt)
                .effect(PartitionsGuideTest::credit)
                .build(pool);
        assertThat(process(meanwhile, order)).isInstanceOf(Outcome.Duplicate.class);
        assertThat(credited()).containsExactly("A-1");
    }

    private List<String> credited() {
        return db.sql("SELECT number FROM ledger")
                .map(row -> String.valueOf(row.get(0)))
                .all()
                .collectList()
                .blockOptional(LIMIT)
                .orElseThrow();
    }

    private static Outcome process(IdempotentConsumer<Order> consumer, Order order) {
        return consumer.process(new Sent(order, new CopyOnWriteArrayList<>()))
                .blockOptional(LIMIT)
                .orElseThrow();
    }

    private record Sent(Order payload, List<Settlement> settled) implements Delivery<Order> {

        @Override
        public String id() {
            return payload.number();
        }

        @Override
        public Mono<Void> settle(Settlement settlement) {
            return Mono.fromRunnable(() -> settled.add(settlement));
        }
    }
}
