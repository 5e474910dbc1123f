package io.onceflux;

import static io.onceflux.Consumers.orders;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.onceflux.Retention.Progress;
import io.onceflux.postgres.ClaimTable;
import io.onceflux.postgres.OldClaims;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.IsolationLevel;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.r2dbc.connection.SingleConnectionFactory;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.Disposable;
import reactor.core.publisher.Mono;

/** Old claims are removed, in small transactions, in nobody's way; and no others. */
class RetentionTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final Retention WEEK =
            Retention.of(ClaimTable.processedMessages(), Duration.ofDays(7)).pause(Duration.ZERO);

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(12);

    private void claims(String consumer, int count, String age) {
        database.run(
                "INSERT INTO processed_messages SELECT '%s', '%s ' || n, now() - interval '%s' FROM generate_series(1, %d) n"
                        .formatted(consumer, age, age, count));
    }

    private List<Progress> run(Retention retention) {
        return Objects.requireNonNull(retention.run(pool).collectList().block(LIMIT));
    }

    private static long removed(List<Progress> run) {
        return run.get(run.size() - 1).removed();
    }

    @Test
    void whatIsOldIsRemovedInBatchesAndWhatIsNotStays() {
        claims("loyalty", 2_500, "8 days");
        claims("audit", 500, "30 days");
        claims("loyalty", 700, "6 days");

        List<Progress> run = run(WEEK.batchSize(1_000));

        assertThat(removed(run)).isEqualTo(3_000);
        assertThat(run).extracting(Progress::removed).isSorted();
        assertThat(run.get(run.size() - 1).done()).isEqualTo(1);
        long before = 0;
        for (Progress progress : run) {
            assertThat(progress.removed() - before).isLessThanOrEqualTo(1_000);
            before = progress.removed();
        }
        assertThat(database.claims()).isEqualTo(700);
        assertThat(removed(run(WEEK))).isZero();
    }

    @Test
    void ofOneConsumerOnly() {
        claims("loyalty", 10, "8 days");
        claims("audit", 10, "8 days");

        assertThat(removed(run(WEEK.forConsumer("audit")))).isEqualTo(10);
        assertThat(database.texts("SELECT DISTINCT consumer FROM processed_messages"))
                .containsExactly("loyalty");
    }

    @Test
    void anEmptyTableIsDoneAtOnce() {
        database.run("TRUNCATE processed_messages");
        assertThat(run(WEEK)).containsExactly(new Progress(0, 1));
    }

    @Test
    void rowsThatSomebodyHasLockedAreLeftForAnotherTime() {
        claims("loyalty", 10, "8 days");
        Connection holder =
                Objects.requireNonNull(Mono.from(database.direct().create()).block(LIMIT));
        try {
            Mono.from(holder.beginTransaction()).block(LIMIT);
            DatabaseClient.create(new SingleConnectionFactory(
                            holder, database.direct().getMetadata(), true))
                    .sql("SELECT * FROM processed_messages WHERE message_key = '8 days 3' FOR UPDATE")
                    .fetch()
                    .all()
                    .then()
                    .block(LIMIT);

            assertThat(removed(run(WEEK))).isEqualTo(9);
        } finally {
            Mono.from(holder.close()).block(LIMIT);
        }
        await().untilAsserted(() -> assertThat(removed(run(WEEK))).isEqualTo(1));
    }

    /** Its dead rows cannot be cleaned up, and are not looked at again and again: each page holds one row, and is a piece. */
    @Test
    void anOldSnapshotDoesNotStopItNorMakeItLookAtAPageAgain() {
        int pages = 500;
        database.run("""
                CREATE TABLE wide (consumer text, message_key text, processed_at timestamptz NOT NULL DEFAULT now(),
                                   filler text NOT NULL DEFAULT repeat('x', 7000), PRIMARY KEY (consumer, message_key))
                    WITH (autovacuum_enabled = off);
                ALTER TABLE wide ALTER filler SET STORAGE PLAIN;
                INSERT INTO wide SELECT 'loyalty', n::text, now() - interval '8 days' FROM generate_series(1, %d) n""".formatted(pages));
        Retention wide = Retention.of(ClaimTable.named("wide"), Duration.ofDays(7))
                .pause(Duration.ZERO)
                .batchSize(50);
        Connection reader =
                Objects.requireNonNull(Mono.from(database.direct().create()).block(LIMIT));
        try {
            Mono.from(reader.beginTransaction(IsolationLevel.REPEATABLE_READ)).block(LIMIT);
            DatabaseClient client = DatabaseClient.create(
                    new SingleConnectionFactory(reader, database.direct().getMetadata(), true));
            Mono<Long> count = client.sql("SELECT count(*) FROM wide")
                    .map(row -> Objects.requireNonNull(row.get(0, Long.class)))
                    .one();
            assertThat(count.block(LIMIT)).isEqualTo(pages);

            List<Progress> run = run(wide);
            assertThat(removed(run)).isEqualTo(pages);
            assertThat(run).as("a transaction a page").hasSize(pages);
            assertThat(removed(run(wide))).isZero();
            assertThat(count.block(LIMIT)).isEqualTo(pages);
            // Before PostgreSQL 14 each place that a row can have is looked at, some 300 of a page.
            long aPage = database.count("SELECT current_setting('server_version_num')::bigint") >= 140_000 ? 10 : 300;
            assertThat(pagesLookedAtIn("wide")).isBetween(2L * pages, 2 * aPage * pages);
        } finally {
            Mono.from(reader.close()).block(LIMIT);
            database.run("DROP TABLE wide");
        }
    }

    /** A session tells its numbers when it ends, at the latest. */
    private long pagesLookedAtIn(String table) {
        pool.disposeLater().block(LIMIT);
        await().until(() -> database.count("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                        + " AND backend_type = 'client backend' AND state = 'idle'")
                == 0);
        return database.count(
                "SELECT heap_blks_read + heap_blks_hit FROM pg_statio_user_tables WHERE relname = '" + table + "'");
    }

    /** Whoever has lost the lock may not be alone any more. */
    @Test
    void aRunThatHasLostItsLockRemovesNothingMore() {
        claims("loyalty", 3_000, "8 days");
        List<Progress> progress = new CopyOnWriteArrayList<>();
        List<Throwable> errors = new CopyOnWriteArrayList<>();
        Disposable running =
                WEEK.batchSize(50).pause(Duration.ofMillis(50)).run(pool).subscribe(progress::add, errors::add);
        await().until(() -> !progress.isEmpty());
        database.run("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND database ="
                + " (SELECT oid FROM pg_database WHERE datname = current_database())");
        await().until(running::isDisposed);

        assertThat(errors).hasSize(1);
        long left = database.claims();
        assertThat(left).isPositive();
        assertThat(removed(run(WEEK))).as("nobody has the lock").isEqualTo(left);
    }

    @Test
    void betweenTwoTransactionsItPausesAndThenIsCancelledAtOnce() {
        claims("loyalty", 1_000, "8 days");
        List<Progress> progress = new CopyOnWriteArrayList<>();
        Disposable running =
                WEEK.batchSize(50).pause(Duration.ofHours(1)).run(pool).subscribe(progress::add);
        await().until(() -> !progress.isEmpty());
        await().during(Duration.ofMillis(300)).until(() -> progress.size() == 1);
        assertThat(database.claims()).isEqualTo(1_000 - removed(progress));
        running.dispose();
        database.assertNothingLeaked();
        assertThat(removed(run(WEEK))).isEqualTo(1_000 - removed(progress));
    }

    /** Nor does it get in between two transactions of the other. */
    @Test
    void aRunThatFindsAnotherAtItLeavesItToThat() {
        claims("loyalty", 3_000, "8 days");
        List<Progress> ofFirst = new CopyOnWriteArrayList<>();
        AtomicBoolean ended = new AtomicBoolean();
        Disposable first = WEEK.batchSize(50)
                .pause(Duration.ofMillis(10))
                .run(pool)
                .subscribe(ofFirst::add, error -> {}, () -> ended.set(true));
        try {
            await().until(() -> !ofFirst.isEmpty());
            for (int i = 0; i < 20 && !ended.get(); i++) {
                List<Progress> second = run(WEEK);
                assertThat(second.isEmpty() || ended.get()).isTrue();
            }
            await().until(ended::get);
        } finally {
            first.dispose();
        }
        assertThat(removed(ofFirst)).isEqualTo(3_000);
        assertThat(ofFirst.get(ofFirst.size() - 1).done()).isEqualTo(1);
        assertThat(database.openTransactions()).isZero();
    }

    @Test
    void claimsOfTwoConsumersAreRemovedSideBySide() {
        claims("loyalty", 500, "8 days");
        claims("audit", 500, "8 days");
        Mono<List<Progress>> one =
                WEEK.batchSize(50).forConsumer("loyalty").run(pool).collectList();
        Mono<List<Progress>> two =
                WEEK.batchSize(50).forConsumer("audit").run(pool).collectList();
        var both = Objects.requireNonNull(Mono.zip(one, two).block(LIMIT));
        assertThat(removed(both.getT1())).isEqualTo(500);
        assertThat(removed(both.getT2())).isEqualTo(500);
    }

    /** PostgreSQL before 14 cannot begin to scan within a table. */
    @Test
    void aServerThatScansNoRangesLooksAtEachPlaceInIt() {
        claims("loyalty", 5_000, "8 days");
        claims("audit", 100, "1 day");
        OldClaims old = new OldClaims(ClaimTable.processedMessages(), null);
        Transactions transactions =
                new Transactions(pool, org.springframework.transaction.annotation.Isolation.DEFAULT, LIMIT);
        OldClaims.Plan plan = Objects.requireNonNull(transactions
                .withoutTransaction(connection -> old.plan(connection, Duration.ofDays(7), 1_000))
                .block(LIMIT));
        OldClaims.Plan before14 = new OldClaims.Plan(plan.oldestKept(), plan.lock(), false, plan.pieces());
        assertThat(plan.pieces()).hasSizeGreaterThan(1);
        for (OldClaims.Piece piece : plan.pieces()) {
            assertThat(transactions
                            .inTransaction(connection -> old.remove(connection, before14, piece, 10_000))
                            .block(LIMIT))
                    .isPositive();
        }
        assertThat(database.claims()).isEqualTo(100);
    }

    @Test
    void aRetentionOfOtherClaimsIsRefused() {
        assertThatThrownBy(() -> orders(Order::apply)
                        .retention(Retention.of(ClaimTable.named("inbox"), Duration.ofDays(7)))
                        .build(pool))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("for other ones")
                .hasMessageContaining("inbox");
        assertThat(orders(Order::apply)
                        .retention(Retention.of(ClaimTable.processedMessages().inSchema("public"), Duration.ofDays(7)))
                        .build(pool))
                .isNotNull();
        assertThatThrownBy(() -> orders(Order::apply)
                        .retention(WEEK.forConsumer("audit"))
                        .build(pool))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("for other ones");
        assertThatThrownBy(() ->
                        orders(Order::apply).withoutClaims().retention(WEEK).build(pool))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("keeps no claims");
    }

    /** Each text would stay on the pooled connection, prepared. */
    @Test
    void aRunNeedsOneStatementForAllItsPieces() {
        claims("loyalty", 5_000, "8 days");
        ConnectionPool two = database.pool(2); // One for the lock.
        WEEK.batchSize(100).run(two).then().block(LIMIT);

        assertThat(DatabaseClient.create(two)
                        .sql("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE 'DELETE%'")
                        .map(row -> Objects.requireNonNull(row.get(0, Long.class)))
                        .one()
                        .block(LIMIT))
                .isLessThanOrEqualTo(1);
        assertThat(database.claims()).isZero();
    }

    @Test
    void aTimeWithoutAZoneIsRefused() {
        database.run("ALTER TABLE processed_messages ALTER processed_at TYPE timestamp");
        try {
            assertThatThrownBy(() -> run(WEEK))
                    .isInstanceOf(InvalidSetupException.class)
                    .hasMessageContaining("timestamp without time zone")
                    .hasMessageContaining("timestamptz");
        } finally {
            database.run("ALTER TABLE processed_messages ALTER processed_at TYPE timestamptz");
        }
    }

    @Test
    void aTableThatSomebodyHasLockedIsNotWaitedForLong() {
        claims("loyalty", 10, "8 days");
        Connection holder =
                Objects.requireNonNull(Mono.from(database.direct().create()).block(LIMIT));
        try {
            Mono.from(holder.beginTransaction()).block(LIMIT);
            DatabaseClient.create(new SingleConnectionFactory(
                            holder, database.direct().getMetadata(), true))
                    .sql("LOCK TABLE processed_messages IN SHARE MODE")
                    .then()
                    .block(LIMIT);

            assertThatThrownBy(() -> run(WEEK.lockTimeout(Duration.ofMillis(50))))
                    .satisfies(error -> assertThat(SqlStates.stateOf(error)).isEqualTo("55P03"));
        } finally {
            Mono.from(holder.close()).block(LIMIT);
        }
        assertThat(database.claims()).isEqualTo(10);
    }

    @Test
    void eachPartitionIsLookedThroughByItself() {
        database.run("""
                CREATE TABLE split (consumer text, message_key text, processed_at timestamptz NOT NULL DEFAULT now(),
                                    PRIMARY KEY (consumer, message_key)) PARTITION BY HASH (message_key);
                CREATE TABLE "split 0" PARTITION OF split FOR VALUES WITH (MODULUS 2, REMAINDER 0);
                CREATE TABLE split_1 PARTITION OF split FOR VALUES WITH (MODULUS 2, REMAINDER 1);
                INSERT INTO split SELECT 'loyalty', n::text, now() - CASE WHEN n % 3 = 0 THEN interval '8 days' ELSE '1 day' END
                FROM generate_series(1, 3000) n""");
        try {
            assertThat(removed(run(Retention.of(ClaimTable.named("split"), Duration.ofDays(7))
                            .pause(Duration.ZERO)
                            .batchSize(100))))
                    .isEqualTo(1_000);
            assertThat(database.count("SELECT count(*) FROM split WHERE message_key::int % 3 = 0"))
                    .isZero();
            assertThat(database.count("SELECT count(*) FROM split")).isEqualTo(2_000);
        } finally {
            database.run("DROP TABLE split");
        }
    }

    @Test
    void itRunsAgainAndAgainWhateverBecomesOfARun() {
        List<Throwable> errors = new CopyOnWriteArrayList<>();
        database.run("ALTER TABLE processed_messages RENAME TO elsewhere");
        Disposable running =
                WEEK.every(Duration.ofMillis(50), pool, errors::add).subscribe();
        try {
            await().until(() -> errors.size() >= 2);
            assertThat(errors).allMatch(InvalidSetupException.class::isInstance);
            database.run("ALTER TABLE elsewhere RENAME TO processed_messages");
            claims("loyalty", 10, "8 days");
            await().until(() -> database.claims() == 0);
        } finally {
            running.dispose();
            database.run("ALTER TABLE IF EXISTS elsewhere RENAME TO processed_messages");
        }
    }

    @Test
    void whatCannotWorkIsRefused() {
        assertThatThrownBy(() -> Retention.of(ClaimTable.processedMessages().withoutProcessedAt(), Duration.ofDays(1)))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("no time of its claims");
        assertThatThrownBy(() -> Retention.of(ClaimTable.named("t").withOneColumnKey("id"), Duration.ofDays(1))
                        .forConsumer("loyalty"))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("no column for the consumer");
        assertThatThrownBy(() -> Retention.of(ClaimTable.processedMessages(), Duration.ZERO))
                .isInstanceOf(InvalidSetupException.class);
        assertThatThrownBy(() -> WEEK.batchSize(0)).isInstanceOf(InvalidSetupException.class);
    }

    @ParameterizedTest
    @CsvSource({"PT2S, PT5S", "P7D, P7D", "P7DT5M, P7D"})
    void claimsThatAreRemovedBeforeTheirMessagesCanComeAgainAreRefused(Duration kept, Duration window) {
        assertThatThrownBy(() -> orders(Order::apply)
                        .retention(Retention.of(ClaimTable.processedMessages(), kept))
                        .redeliveryWindow(window)
                        .build(pool))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("redeliveryWindow of " + window)
                .hasMessageContaining("kept for " + kept);
    }

    @Test
    void aRetentionWithoutAWindowOrATimeIsWarnedOf() {
        RecordingListener told = new RecordingListener();
        Consumers.run(orders(Order::apply).retention(WEEK).listener(told).build(pool), TestDelivery.order("1"));
        assertThat(told.warnings)
                .anyMatch(warning -> warning.contains("no redeliveryWindow"))
                .anyMatch(warning -> warning.contains("have no time (sentAt)"));
    }

    /** Claims go on while others are removed. */
    @Test
    void messagesAreHandledMeanwhile() {
        claims("loyalty", 20_000, "8 days");
        Disposable cleaning = WEEK.batchSize(500)
                .every(Duration.ofMillis(1), pool, error -> {})
                .subscribe();
        try {
            List<Outcome> outcomes =
                    Consumers.run(orders(Order::apply).build(database.pool(6)), TestDelivery.orders("m", 1_000));
            assertThat(outcomes).hasSize(1_000).allMatch(Outcome.Applied.class::isInstance);
            await().until(() -> database.claims() == 1_000);
        } finally {
            cleaning.dispose();
        }
        database.assertAppliedOnce(1_000);
    }
}
