package io.onceflux;

import static io.onceflux.Consumers.batches;
import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.run;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.r2dbc.pool.ConnectionPool;
import java.io.File;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

class RecentKeysTest {

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(12);
    private final RecentKeys recent = RecentKeys.of(1_000, Duration.ofMinutes(5));

    @ParameterizedTest
    @ValueSource(ints = {1, 64})
    void aDuplicateOfWhatWasCommittedHereNeedsNoTransaction(int maxBatch) {
        IdempotentConsumer<Order> consumer =
                batches(maxBatch, Order::apply).recentKeys(recent).build(pool);
        run(consumer, TestDelivery.orders("m", 50));
        assertThat(recent.hits()).isZero();

        // Whoever asks the database now fails, and is seen.
        database.run("ALTER TABLE processed_messages RENAME TO elsewhere");
        try {
            List<TestDelivery<Order>> again = TestDelivery.orders("m", 50);
            assertThat(run(consumer, again)).hasSize(50).allMatch(Outcome.Duplicate.class::isInstance);
            assertThat(again).allMatch(TestDelivery::isAcknowledged);
            assertThat(recent.hits()).isEqualTo(50);
        } finally {
            database.run("ALTER TABLE elsewhere RENAME TO processed_messages");
        }
        database.assertAppliedOnce(50);
    }

    @Test
    void withoutCaffeineASentenceSaysWhatToAdd() throws Exception {
        List<URL> others = new ArrayList<>();
        for (String entry : System.getProperty("java.class.path").split(File.pathSeparator, -1)) {
            if (!entry.contains("caffeine")) {
                others.add(Path.of(entry).toUri().toURL());
            }
        }
        try (URLClassLoader without =
                new URLClassLoader(others.toArray(URL[]::new), ClassLoader.getPlatformClassLoader())) {
            Method of = without.loadClass(RecentKeys.class.getName()).getMethod("of", long.class, Duration.class);
            assertThatThrownBy(() -> of.invoke(null, 10, Duration.ofMinutes(1)))
                    .cause()
                    .hasToString(
                            InvalidSetupException.class.getName()
                                    + ": RecentKeys needs Caffeine on the class path: add com.github.ben-manes.caffeine:caffeine");
        }
    }

    @Test
    void duplicatesThatTheDatabaseFoundAreRememberedAndTheRestOfABatchIsApplied() {
        run(orders(Order::apply).build(pool), TestDelivery.orders("m", 10));
        IdempotentConsumer<Order> consumer =
                batches(64, Order::apply).recentKeys(recent).build(pool);
        run(consumer, TestDelivery.orders("m", 10));
        assertThat(recent.hits()).isZero();
        List<Outcome> outcomes = run(consumer, TestDelivery.orders("m", 30));
        assertThat(outcomes).filteredOn(Outcome.Duplicate.class::isInstance).hasSize(10);
        assertThat(outcomes).filteredOn(Outcome.Applied.class::isInstance).hasSize(20);
        assertThat(recent.hits()).isEqualTo(10);
        database.assertAppliedOnce(30);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 64})
    void whatIsNotCommittedIsNeverHidden(int maxBatch) {
        AtomicInteger tries = new AtomicInteger();
        Effect<Order> failsTwice = (order, db) -> order.apply(db)
                .then(tries.getAndIncrement() < 2 ? Mono.error(new IllegalStateException("later")) : Mono.empty());
        IdempotentConsumer<Order> consumer =
                batches(maxBatch, failsTwice).recentKeys(recent).build(pool);
        assertThat(run(consumer, TestDelivery.order("1"))).isInstanceOf(Outcome.Applied.class);

        IdempotentConsumer<Order> failing = batches(
                        maxBatch,
                        (order, db) ->
                                order.apply(db).then(db.sql("SELECT 1 / 0").then()))
                .recentKeys(recent)
                .build(pool);
        assertThat(run(failing, TestDelivery.order("2"))).isInstanceOf(Outcome.Failed.class);
        assertThat(run(consumer, TestDelivery.order("2")))
                .as("a dead letter that is replayed")
                .isInstanceOf(Outcome.Applied.class);
        assertThat(recent.hits()).isZero();
        database.assertAppliedOnce(2);
    }

    @Test
    void aCommitThatIsRefusedOrNotAnsweredIsNotRemembered() {
        database.run("CREATE TABLE guarded (id text REFERENCES balances DEFERRABLE INITIALLY DEFERRED)");
        IdempotentConsumer<Order> refused = orders((order, db) -> order.note(db)
                        .then(db.sql("INSERT INTO guarded VALUES ('nobody')").then()))
                .recentKeys(recent)
                .build(pool);
        assertThat(run(refused, TestDelivery.order("1"))).isInstanceOf(Outcome.Failed.class);
        database.run("DROP TABLE guarded");
        try (CommitCuttingProxy proxy = new CommitCuttingProxy(database.host(), database.port())) {
            IdempotentConsumer<Order> consumer = orders(Order::apply)
                    .recentKeys(recent)
                    .build(database.pool(
                            10, database.configuration().host("127.0.0.1").port(proxy.port())));
            proxy.toCutBefore.set(1);
            assertThat(run(consumer, TestDelivery.order("1"))).isInstanceOf(Outcome.Applied.class);
        }
        assertThat(recent.hits()).isZero();
        database.assertAppliedOnce(1);
    }

    @Test
    void aCopyThatArrivesWhileTheFirstIsUnderWayWaitsForTheDatabase() {
        Sinks.Empty<Void> end = Sinks.empty();
        IdempotentConsumer<Order> consumer = orders(
                        (order, db) -> order.note(db).then(end.asMono()))
                .recentKeys(recent)
                .build(pool);
        CompletableFuture<Outcome> first =
                consumer.process(TestDelivery.order("1")).toFuture();
        await().until(() -> database.openTransactions() == 1);
        CompletableFuture<Outcome> second =
                consumer.process(TestDelivery.order("1")).toFuture();
        await().until(() -> database.openTransactions() == 2);
        assertThat(second).isNotDone();
        end.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);
        assertThat(List.of(first.join(), second.join()))
                .extracting(Object::getClass)
                .map(Class::getSimpleName)
                .containsExactlyInAnyOrder("Applied", "Duplicate");
        assertThat(recent.hits()).isZero();
        database.assertAppliedOnce(1);
    }

    @Test
    void aKeyThatIsForgottenOrTooOldIsAskedForAgain() {
        IdempotentConsumer<Order> consumer =
                orders(Order::note).recentKeys(recent).build(pool);
        run(consumer, TestDelivery.order("1"));
        database.run("DELETE FROM processed_messages");
        assertThat(run(consumer, TestDelivery.order("1"))).isInstanceOf(Outcome.Duplicate.class);
        recent.forget(MessageKey.of("loyalty", "1"));
        assertThat(run(consumer, TestDelivery.order("1"))).isInstanceOf(Outcome.Applied.class);

        RecentKeys brief = RecentKeys.of(10, Duration.ofMillis(1));
        Message<Order> message = message("1");
        brief.remember(message);
        await().until(() -> !brief.knows(message));
    }

    private static Message<Order> message(String id) {
        return new Message<>(TestDelivery.order(id), MessageKey.of("loyalty", id), null, 0, false, null, null, null);
    }

    @Test
    void theNumberOfKeysIsBounded() {
        RecentKeys few = RecentKeys.of(100, Duration.ofHours(1));
        for (int i = 0; i < 100_000; i++) {
            few.remember(message("m" + i));
        }
        assertThat(few.toString()).startsWith("RecentKeys[about 100 keys");
        assertThatThrownBy(() -> RecentKeys.of(0, Duration.ofHours(1)))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("maximum");
        assertThatThrownBy(() -> RecentKeys.of(1, Duration.ZERO))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("timeToLive");
    }

    @Test
    void consumersThatShareItDoNotSeeEachOthersKeys() {
        run(orders(Order::note).recentKeys(recent).build(pool), TestDelivery.order("1"));
        Outcome other = run(
                Consumers.named("audit", (order, db) -> db.sql("SELECT 1").then())
                        .recentKeys(recent)
                        .build(pool),
                TestDelivery.order("1"));
        assertThat(other).isInstanceOf(Outcome.Applied.class);
    }
}
