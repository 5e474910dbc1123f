package io.onceflux;

import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.policy;
import static io.onceflux.Consumers.start;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.services.PostgresService;
import io.r2dbc.pool.ConnectionPool;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/** A server of its own, which is terminated, killed, stalled and replaced under load: everything is applied once afterwards. */
class OutageTest {

    private static final int MESSAGES = 150;

    @AutoClose
    private static final PostgresService service = PostgresService.start();

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.on(service);

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(8);
    private final RecordingListener listener = new RecordingListener();
    private final List<TestDelivery<Order>> deliveries = TestDelivery.orders("o", MESSAGES);

    private final IdempotentConsumer<Order> consumer = orders(
                    (order, db) -> Mono.delay(Duration.ofMillis(20)).then(order.apply(db)))
            .lanes(6)
            .maxInFlight(40)
            .controlLimit(Duration.ofSeconds(2))
            .timeLimit(Duration.ofSeconds(4))
            .lockTimeout(Duration.ofSeconds(2))
            .downAfter(Duration.ofSeconds(10))
            .failurePolicy(policy().maxAttempts(2).build())
            .listener(listener)
            .build(pool);

    private CompletableFuture<List<Outcome>> startUnderLoad() {
        CompletableFuture<List<Outcome>> outcomes = start(consumer, deliveries);
        await().until(() -> listener.outcomes.size() > 10);
        return outcomes;
    }

    private void assertEverythingIsAppliedOnce(CompletableFuture<List<Outcome>> outcomes) {
        await().atMost(Duration.ofSeconds(30)).until(outcomes::isDone);
        assertThat(outcomes.join()).hasSize(MESSAGES).noneMatch(Outcome.Failed.class::isInstance);
        assertThat(deliveries).allMatch(TestDelivery::isAcknowledged);
        assertThat(consumer.health().status()).isEqualTo(Health.Status.UP);
        database.assertAppliedOnce(MESSAGES);
    }

    @Test
    void sessionsThatAreTerminated() {
        CompletableFuture<List<Outcome>> outcomes = startUnderLoad();
        for (int i = 0; i < 5; i++) {
            int seen = listener.outcomes.size();
            database.terminateSessions();
            await().until(() -> outcomes.isDone() || listener.outcomes.size() > seen + 5);
        }
        assertEverythingIsAppliedOnce(outcomes);
    }

    @Test
    void aServerThatIsKilledAndComesBack() {
        CompletableFuture<List<Outcome>> outcomes = startUnderLoad();
        service.kill();
        await().until(() -> listener.held.contains(FailureKind.INFRASTRUCTURE));
        int during = listener.outcomes.size();
        await().during(Duration.ofSeconds(1)).until(() -> listener.outcomes.size() <= during + 1);
        assertThat(consumer.health().status()).isEqualTo(Health.Status.DEGRADED);
        assertThat(consumer.health().troubles())
                .extracting(Health.Trouble::what)
                .containsExactly("database");
        service.restart();

        assertEverythingIsAppliedOnce(outcomes);
        assertThat(listener.resumed).hasPositiveValue();
    }

    @Test
    void aServerThatShutsDownInGoodOrderAndComesBack() {
        CompletableFuture<List<Outcome>> outcomes = startUnderLoad();
        service.stop();
        await().until(() -> listener.held.contains(FailureKind.INFRASTRUCTURE));
        service.restart();

        assertEverythingIsAppliedOnce(outcomes);
    }

    @Test
    void aFailoverToAStandbyThatOnlyReadsUntilItIsPromoted() {
        database.run("COPY (SELECT '') TO PROGRAM 'cat > standby.signal'");
        CompletableFuture<List<Outcome>> outcomes = startUnderLoad();
        service.stop();
        service.restart();
        assertThat(database.texts("SELECT pg_is_in_recovery()::text")).containsExactly("true");
        int seen = listener.retries.size();
        await().until(() -> listener.retries.size() > seen + 100);
        assertThat(listener.held).containsOnly(FailureKind.INFRASTRUCTURE);
        assertThat(consumer.health().troubles())
                .extracting(Health.Trouble::what)
                .containsExactly("database");
        int during = listener.outcomes.size();
        await().during(Duration.ofSeconds(1)).until(() -> listener.outcomes.size() == during);
        assertThat(database.texts("SELECT pg_promote()::text")).containsExactly("true");

        assertEverythingIsAppliedOnce(outcomes);
        assertThat(listener.resumed).hasPositiveValue();
    }

    @Test
    void aCallerIsAnsweredInItsBudgetByAServerThatStalls() {
        Sinks.Empty<Void> inEffect = Sinks.empty();
        IdempotentConsumer<Order> webhook = orders((order, db) -> order.note(db)
                        .doOnSuccess(done -> inEffect.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST))
                        .then(Mono.delay(Duration.ofMillis(200)))
                        .then(order.apply(db)))
                .processBudget(Duration.ofSeconds(2))
                .build(pool);
        CompletableFuture<Outcome> midway =
                webhook.process(TestDelivery.order("midway")).toFuture();
        inEffect.asMono().block(Duration.ofSeconds(20));
        service.freeze();
        try {
            CompletableFuture<Outcome> late =
                    webhook.process(TestDelivery.order("late")).toFuture();
            await().atMost(Duration.ofSeconds(5)).until(() -> midway.isDone() && late.isDone());
            assertThat(Stream.of(midway, late).map(CompletableFuture::join).map(Consumers::failureOf))
                    .extracting(Failure::kind)
                    .containsOnly(FailureKind.INFRASTRUCTURE);
        } finally {
            service.thaw();
        }
        await().untilAsserted(() -> assertThat(
                        webhook.process(TestDelivery.order("midway")).block())
                .isInstanceOf(Outcome.Applied.class));
    }

    @Test
    void aServerThatStallsForThirtySeconds() {
        CompletableFuture<List<Outcome>> outcomes = startUnderLoad();
        service.freeze();
        long start = System.nanoTime();
        await().atMost(Duration.ofSeconds(35))
                .until(() -> System.nanoTime() - start > Duration.ofSeconds(30).toNanos());
        assertThat(listener.held).contains(FailureKind.INFRASTRUCTURE);
        await().untilAsserted(() -> assertThat(consumer.health().status()).isEqualTo(Health.Status.DOWN));
        service.thaw();

        assertEverythingIsAppliedOnce(outcomes);
    }

    @Test
    void aDatabaseThatComesAndGoesMakesNoDeadLetters() {
        int suspectedAfter = FailurePolicy.defaults().quarantineAfter();
        AtomicBoolean comesAndGoes = new AtomicBoolean(true);
        List<TestDelivery<Order>> few = TestDelivery.orders("f", 4);
        IdempotentConsumer<Order> slow = orders((order, db) -> order.apply(db)
                        .then(comesAndGoes.get() ? db.sql("SELECT pg_sleep(20)").then() : Mono.empty()))
                .listener(listener)
                .build(pool);
        CompletableFuture<List<Outcome>> outcomes = start(slow, few);
        await().atMost(Duration.ofSeconds(60))
                .pollInterval(Duration.ofMillis(20))
                .until(() -> {
                    // Only when they are at work again, so that what a failure asks the database in between is
                    // answered.
                    if (database.count(
                                    "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%pg_sleep(20)%'"
                                            + " AND pid <> pg_backend_pid()")
                            >= 2) {
                        database.terminateSessions();
                    }
                    return outcomes.isDone() || listener.retries.size() > 4 * 2 * suspectedAfter;
                });
        comesAndGoes.set(false);
        database.terminateSessions();

        assertThat(outcomes).succeedsWithin(Duration.ofSeconds(30));
        assertThat(outcomes.join()).hasSize(4).noneMatch(Outcome.Failed.class::isInstance);
        database.assertAppliedOnce(4);
    }
}
