package io.onceflux;

import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.policy;
import static io.onceflux.Consumers.start;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.r2dbc.pool.ConnectionPool;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import reactor.core.publisher.Flux;

/** A service that is deployed before its migration, or with a fault for every message, does not empty its queue. */
class MissingMigrationTest {

    private static final Duration LIMIT = Duration.ofSeconds(30);

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(10);
    private final RecordingListener listener = new RecordingListener();

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            42883 | SELECT level_of(:id)                                            | CREATE FUNCTION level_of(id text) RETURNS int LANGUAGE sql AS 'SELECT 1'                  | DROP FUNCTION level_of
            42704 | SELECT (:id)::level_name                                        | CREATE DOMAIN level_name AS text                                                          | DROP DOMAIN level_name
            42P10 | INSERT INTO levels VALUES (:id, 1) ON CONFLICT (id) DO NOTHING  | CREATE UNIQUE INDEX ON levels (id)                                                        | DROP INDEX levels_id_idx
            42804 | INSERT INTO levels (id, level) SELECT :id, 'gold'::text         | ALTER TABLE levels ALTER COLUMN level TYPE text                                           | ALTER TABLE levels ALTER COLUMN level TYPE int USING 1
            """)
    void messagesAreHeldUntilTheMigrationHasRun(String state, String statement, String migration, String undo) {
        database.run("CREATE TABLE IF NOT EXISTS levels (id text, level int)");
        database.run("TRUNCATE levels");
        IdempotentConsumer<Order> consumer = orders((order, db) -> order.apply(db)
                        .then(db.sql(statement).bind("id", order.id()).then()))
                .listener(listener)
                .build(pool);
        List<TestDelivery<Order>> deliveries = TestDelivery.orders("o", 30);
        CompletableFuture<List<Outcome>> outcomes = start(consumer, deliveries);

        await().until(() -> listener.retries.size() > 30);
        assertThat(listener.sqlStatesOfRetries()).containsOnly(state);
        assertThat(listener.held).containsExactly(FailureKind.BROKEN_SETUP);
        assertThat(deliveries).flatMap(TestDelivery::settlements).isEmpty();
        database.run(migration);
        try {
            assertThat(outcomes).succeedsWithin(LIMIT);
            assertThat(deliveries).allMatch(TestDelivery::isAcknowledged);
            database.assertAppliedOnce(30);
        } finally {
            database.run(undo);
        }
    }

    /** An operator for the types that one message alone brings is not missing for the others. */
    @ParameterizedTest
    @CsvSource({"1", "10"})
    void aMessageThatAloneFailsSoIsGivenUpWhileOthersAreApplied(int maxBatch) {
        IdempotentConsumer<Order> consumer = orders((order, db) -> order.id().equals("bad")
                        ? db.sql("SELECT no_such_function()").then()
                        : order.apply(db))
                .maxBatch(maxBatch)
                .failurePolicy(policy().quarantineAfter(3).build())
                .listener(listener)
                .build(pool);
        TestDelivery<Order> bad = TestDelivery.order("bad");
        Flux<Delivery<Order>> good = Flux.interval(Duration.ofMillis(20))
                .onBackpressureDrop()
                .map(n -> (Delivery<Order>) TestDelivery.order("good-" + n))
                .takeUntil(delivery -> bad.isDeadLettered());
        CompletableFuture<List<Outcome>> outcomes = Flux.concat(Flux.just(bad), good)
                .transform(consumer)
                .collectList()
                .toFuture();

        assertThat(outcomes).succeedsWithin(LIMIT);
        assertThat(bad.isDeadLettered()).isTrue();
        assertThat(listener.count(Outcome.Failed.class)).isEqualTo(1);
        await().untilAsserted(() -> assertThat(consumer.health().status()).isEqualTo(Health.Status.UP));
    }

    @Test
    void aDeploymentThatFailsInTwoWaysIsHeldAfterAFewOfEach() {
        database.run("CREATE TABLE IF NOT EXISTS two_ways (a int NOT NULL, b int CHECK (b > 0))");
        IdempotentConsumer<Order> consumer = orders((order, db) -> db.sql(
                                order.id().endsWith("0")
                                        ? "INSERT INTO two_ways VALUES (NULL, 1)"
                                        : "INSERT INTO two_ways VALUES (1, -1)")
                        .then())
                .listener(listener)
                .failurePolicy(policy().alarmAfter(10).build())
                .build(pool);
        List<TestDelivery<Order>> deliveries = TestDelivery.orders("o", 400);
        CompletableFuture<List<Outcome>> outcomes = start(consumer, deliveries);

        await().until(() -> listener.held.contains(FailureKind.BROKEN_SETUP));
        int seen = listener.retries.size();
        await().until(() -> listener.retries.size() > seen + 40);
        assertThat(deliveries).filteredOn(TestDelivery::isDeadLettered).hasSizeLessThanOrEqualTo(20);
        assertThat(outcomes).isNotDone();
        consumer.stop().block(LIMIT);
    }
}
