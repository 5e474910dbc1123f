package io.onceflux;

import static io.onceflux.Consumers.batches;
import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.run;
import static io.onceflux.Consumers.start;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.onceflux.postgres.Buckets;
import io.onceflux.postgres.ClaimTable;
import io.onceflux.postgres.UniqueKey;
import io.r2dbc.pool.ConnectionPool;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** From a plain claim table to one with partitions, while messages come twice and instances of both releases run. */
class MovingClaimsTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final Claims OLD = Claims.in(ClaimTable.processedMessages());
    private static final ClaimTable DAILY = ClaimTable.named("claims").partitionedBy(Buckets.daily());

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(30);

    @BeforeEach
    void create() {
        database.run("DROP TABLE IF EXISTS claims");
        DAILY.create(pool).block(LIMIT);
        Retention.of(DAILY, Duration.ofDays(7)).run(pool).then().block(LIMIT);
    }

    private IdempotentConsumer<Order> first(int maxBatch) {
        return batches(maxBatch, Order::apply).claims(OLD).build(pool);
    }

    private IdempotentConsumer<Order> second(int maxBatch) {
        return batches(maxBatch, Order::apply)
                .claims(Claims.moving(OLD, Claims.in(DAILY)))
                .bucketedBy(MovingClaimsTest::timeOf)
                .build(pool);
    }

    private IdempotentConsumer<Order> third(int maxBatch) {
        return batches(maxBatch, Order::apply)
                .claimTable(DAILY)
                .bucketedBy(MovingClaimsTest::timeOf)
                .build(pool);
    }

    private static Instant timeOf(Order order) {
        return order.id().equals("ancient") ? Instant.EPOCH : Instant.now().minusSeconds(order.points());
    }

    private static List<TestDelivery<Order>> messages(int from, int to) {
        return IntStream.range(from, to)
                .mapToObj(n -> TestDelivery.order("m" + n))
                .toList();
    }

    private static void awaitAll(List<CompletableFuture<List<Outcome>>> running) {
        running.forEach(
                one -> assertThat(one.orTimeout(60, TimeUnit.SECONDS).join()).allMatch(Outcome::isDone));
    }

    /** Each release meets what the one before it has applied, and what it applies at the same time. */
    @ParameterizedTest
    @ValueSource(ints = {1, 64})
    void everyMessageIsAppliedOnceWhileTheReleasesRunSideBySide(int maxBatch) {
        run(first(maxBatch), messages(0, 100));
        awaitAll(List.of(start(first(maxBatch), messages(50, 200)), start(second(maxBatch), messages(0, 200))));
        assertThat(database.effects()).isEqualTo(200);

        // All that may come again has been claimed in both.
        awaitAll(List.of(start(second(maxBatch), messages(100, 300)), start(third(maxBatch), messages(100, 300))));
        run(third(maxBatch), messages(0, 300));

        assertThat(database.effects()).isEqualTo(300);
        assertThat(database.count("SELECT count(*) FROM claims")).isEqualTo(300);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 64})
    void whatTheNewTableRefusesIsClaimedInNeither(int maxBatch) {
        List<TestDelivery<Order>> both = List.of(TestDelivery.order("ancient"), TestDelivery.order("m1"));

        run(second(maxBatch), both);

        assertThat(both.get(0).isDeadLettered()).isTrue();
        assertThat(both.get(1).isAcknowledged()).isTrue();
        assertThat(database.texts("SELECT message_key FROM processed_messages")).containsExactly("m1");
        assertThat(database.texts("SELECT message_key FROM claims")).containsExactly("m1");
    }

    @Test
    void onlyClaimsOfEachMessageCanBeMoved() {
        assertThatThrownBy(() -> Claims.moving(OLD, new WithoutClaims(UniqueKey.of("point_ledger", "order_id"))))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("not from processed_messages to");
        assertThatThrownBy(() -> Claims.moving(OLD, OLD))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("claims cannot be moved from processed_messages to itself");
        assertThatThrownBy(() -> Claims.moving(Claims.in(DAILY), OLD))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("claims cannot be moved from claims, which has partitions");
        assertThatThrownBy(() -> orders(Order::apply)
                        .claims(Claims.moving(OLD, Claims.in(DAILY)))
                        .build(pool))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("processed_messages and claims, which has partitions");
    }
}
