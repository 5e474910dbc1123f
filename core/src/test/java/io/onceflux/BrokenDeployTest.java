package io.onceflux;

import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.start;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.r2dbc.pool.ConnectionPool;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import reactor.core.publisher.Mono;

/** A deployment breaks a statement of the effect under load: messages wait until it is mended, and none is given up. */
class BrokenDeployTest {

    private static final int MESSAGES = 150;

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(9);
    private final RecordingListener listener = new RecordingListener();
    private final List<TestDelivery<Order>> deliveries = TestDelivery.orders("o", MESSAGES);

    private final IdempotentConsumer<Order> consumer = orders(
                    (order, db) -> Mono.delay(Duration.ofMillis(10)).then(order.apply(db)))
            .lanes(6)
            .maxInFlight(40)
            .listener(listener)
            .build(pool);

    @AfterEach
    void mend() {
        database.run("""
                DO $$ BEGIN
                    ALTER TABLE balances RENAME COLUMN score TO points;
                EXCEPTION WHEN undefined_column THEN NULL;
                END $$""");
    }

    @Test
    void aColumnThatIsRenamedHoldsTheMessagesWithAnAlarmUntilItIsRenamedBack() {
        CompletableFuture<List<Outcome>> outcomes = start(consumer, deliveries);
        await().until(() -> listener.count(Outcome.Applied.class) > 10);
        database.run("ALTER TABLE balances RENAME COLUMN points TO score");

        awaitManyMoreRetries();
        assertThat(listener.held).contains(FailureKind.BROKEN_SETUP);
        assertThat(consumer.health().status()).isEqualTo(Health.Status.DOWN);
        assertThat(consumer.health().troubles()).singleElement().satisfies(trouble -> {
            assertThat(trouble.what()).isEqualTo("set-up");
            assertThat(trouble.reason()).contains("points");
        });
        assertThat(listener.retries)
                .extracting(RecordingListener.Retry::sqlState)
                .containsOnly("42703");
        assertThat(outcomes).isNotDone();

        database.run("ALTER TABLE balances RENAME COLUMN score TO points");
        assertEverythingIsAppliedOnce(outcomes);
    }

    @Test
    void duplicatesThatCommitMeanwhileDoNotMakeItTheFaultOfTheMessages() {
        CompletableFuture<List<Outcome>> outcomes = start(consumer, deliveries);
        await().until(() -> listener.count(Outcome.Applied.class) > 10);
        database.run("ALTER TABLE balances RENAME COLUMN points TO score");
        await().until(() -> listener.held.contains(FailureKind.BROKEN_SETUP));
        String applied =
                database.texts("SELECT order_id FROM point_ledger LIMIT 1").get(0);

        for (int round = 0; round < 15; round++) {
            int before = listener.retries.size();
            assertThat(consumer.process(TestDelivery.order(applied)).block()).isInstanceOf(Outcome.Duplicate.class);
            await().until(() -> listener.retries.size() > before + 12);
        }
        assertThat(listener.count(Outcome.Failed.class)).isZero();

        database.run("ALTER TABLE balances RENAME COLUMN score TO points");
        assertEverythingIsAppliedOnce(outcomes);
    }

    /** Each message that is at work fails more often than a message that alone fails may. */
    private void awaitManyMoreRetries() {
        await().atMost(Duration.ofSeconds(30))
                .until(() -> listener.retries.stream()
                        .collect(Collectors.groupingBy(retry -> retry.delivery().origin(), Collectors.counting()))
                        .values()
                        .stream()
                        .allMatch(times -> times > 3L * FailurePolicy.defaults().quarantineAfter()));
    }

    private void assertEverythingIsAppliedOnce(CompletableFuture<List<Outcome>> outcomes) {
        await().atMost(Duration.ofSeconds(30)).until(outcomes::isDone);
        assertThat(outcomes.join()).hasSize(MESSAGES).allMatch(Outcome.Applied.class::isInstance);
        assertThat(deliveries).allMatch(TestDelivery::isAcknowledged);
        assertThat(consumer.health().status()).isEqualTo(Health.Status.UP);
        database.assertAppliedOnce(MESSAGES);
    }
}
