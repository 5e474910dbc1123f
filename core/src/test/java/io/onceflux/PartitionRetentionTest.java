package io.onceflux;

import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.run;
import static io.onceflux.Consumers.start;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.onceflux.Retention.Progress;
import io.onceflux.postgres.Buckets;
import io.onceflux.postgres.ClaimTable;
import io.onceflux.postgres.MissingPartitionException;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.spi.Connection;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.r2dbc.connection.SingleConnectionFactory;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.Disposable;
import reactor.core.publisher.Mono;

/** Partitions of a claim table are made ahead and dropped whole, and no claim waits for it. */
class PartitionRetentionTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final ClaimTable DAILY = ClaimTable.named("claims").partitionedBy(Buckets.daily());

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(12);
    private final Instant today = Instant.now().truncatedTo(ChronoUnit.DAYS);
    private final Map<String, Instant> placed = new ConcurrentHashMap<>();

    @BeforeEach
    void create() {
        database.texts(
                        "SELECT relname FROM pg_class WHERE relname LIKE 'claims\\_p%' AND relkind = 'r' AND NOT relispartition")
                .forEach(name -> database.run("DROP TABLE " + name));
        database.run("DROP TABLE IF EXISTS claims");
        DAILY.create(pool).block(LIMIT);
    }

    private List<Progress> keep(int days) {
        return Objects.requireNonNull(Retention.of(DAILY, Duration.ofDays(days))
                .run(pool)
                .collectList()
                .block(LIMIT));
    }

    private List<String> partitions() {
        return database.texts("SELECT c.relname::text FROM pg_class c JOIN pg_inherits i ON i.inhrelid = c.oid"
                + " WHERE i.inhparent = 'claims'::regclass AND NOT i.inhdetachpending ORDER BY 1");
    }

    private static String name(Instant day) {
        return "claims_p" + day.toString().substring(0, 10).replace("-", "");
    }

    private Instant day(int fromToday) {
        return today.plus(Duration.ofDays(fromToday));
    }

    private IdempotentConsumer<Order> consumer() {
        return orders(Order::apply)
                .claimTable(DAILY)
                .bucketedBy(order -> placed.getOrDefault(order.id(), Instant.now()))
                .build(pool);
    }

    private void claim(String id, Instant time) {
        placed.put(id, time);
        assertThat(run(consumer(), TestDelivery.order(id))).isInstanceOf(Outcome.Applied.class);
    }

    private boolean exists(Instant day) {
        return database.count("SELECT count(*) FROM pg_class WHERE relname = '" + name(day) + "'") == 1;
    }

    @Test
    void partitionsAreMadeFromTheOldestTimeThatIsKeptToSomeDaysAhead() {
        assertThat(keep(5)).containsExactly(new Progress(0, 1));

        assertThat(partitions())
                .containsExactlyElementsOf(Stream.iterate(-5, day -> day + 1)
                        .limit(10)
                        .map(day -> name(day(day)))
                        .toList());
        assertThat(keep(5)).containsExactly(new Progress(0, 1));
        assertThat(partitions()).hasSize(10);
    }

    @Test
    void whatIsOldIsDroppedWholeAndWhatIsNotStays() {
        keep(5);
        claim("old", day(-5));
        claim("older than a day", day(-1));
        claim("new", day(0));
        database.run("ANALYZE claims");

        List<Progress> run = keep(2);

        assertThat(run).hasSize(3);
        assertThat(run.get(2).removed()).isEqualTo(1);
        assertThat(run).extracting(Progress::done).containsExactly(1.0 / 3, 2.0 / 3, 1.0);
        assertThat(partitions()).first().isEqualTo(name(day(-2)));
        assertThat(exists(day(-3))).isFalse();
        assertThat(database.texts("SELECT message_key FROM claims"))
                .containsExactlyInAnyOrder("older than a day", "new");
    }

    /** Who has dropped it may have known why; a message of its time would be applied again. */
    @Test
    void noneIsMadeBeforeOthers() {
        keep(5);
        database.run("DROP TABLE " + name(day(-5)));
        keep(30);

        assertThat(partitions()).hasSize(9).first().isEqualTo(name(day(-4)));
    }

    /** Whether its claims matter nobody knows here. But as long as nothing is said, its messages wait in vain. */
    @Test
    void aGapIsToldByEachRunAfterItsOtherWorkAndFilledByNone() {
        keep(5);
        database.run("DROP TABLE " + name(day(0)));
        database.run("DROP TABLE " + name(day(3)) + ", " + name(day(4)));
        List<Progress> done = new CopyOnWriteArrayList<>();
        List<Throwable> told = new CopyOnWriteArrayList<>();
        Disposable runs = Retention.of(DAILY, Duration.ofDays(2))
                .every(Duration.ofMillis(50), pool, told::add)
                .subscribe(done::add);
        await().until(() -> told.size() > 2);
        runs.dispose();

        assertThat(told)
                .allSatisfy(error -> assertThat(error)
                        .isInstanceOf(MissingPartitionException.class)
                        .hasMessage(
                                ("table claims has a gap between its partitions, whose messages are held: from %s to %s there is none,"
                                                + " although there are later ones: it was dropped or detached, with its claims. If it is still there,"
                                                + " attach it again. If not, and if none of its messages can come again or they are known not to be"
                                                + " applied, make it: CREATE TABLE public.\"%s\" PARTITION OF \"claims\" FOR VALUES FROM ('%s') TO ('%s');")
                                        .formatted(
                                                day(0),
                                                day(1),
                                                name(day(0)),
                                                day(0).toString().substring(0, 10),
                                                day(1).toString().substring(0, 10))));
        assertThat(done).contains(new Progress(0, 1));
        assertThat(partitions())
                .containsExactlyElementsOf(
                        Stream.of(-2, -1, 1, 2, 3, 4).map(day -> name(day(day))).toList());
    }

    @Test
    void aGapThatIsDroppedWithTheOldOnesAroundItIsNoneAnyMore() {
        keep(5);
        database.run("DROP TABLE " + name(day(-4)));

        assertThatThrownBy(() -> keep(5)).isInstanceOf(MissingPartitionException.class);
        assertThat(keep(2)).hasSize(2).last().isEqualTo(new Progress(0, 1));
    }

    @Test
    void ofManyThatAreDroppedTheLastOneIsAllOfThem() {
        keep(30);

        assertThat(keep(1))
                .hasSize(29)
                .extracting(Progress::done)
                .isSorted()
                .allMatch(share -> share > 0 && share <= 1)
                .last()
                .isEqualTo(1.0);
    }

    @Test
    void ofSeveralInstancesOneDoesTheWork() {
        List<CompletableFuture<List<Progress>>> all = Stream.generate(() -> Retention.of(DAILY, Duration.ofDays(20))
                        .run(pool)
                        .collectList()
                        .toFuture())
                .limit(4)
                .toList();

        for (CompletableFuture<List<Progress>> one : all) {
            assertThat(one.orTimeout(60, TimeUnit.SECONDS).join()).isSubsetOf(new Progress(0, 1));
        }
        assertThat(partitions()).hasSize(25);
    }

    /** A transaction that has claimed there keeps the partition from being taken out, for as long as it lasts. */
    @Test
    void claimsGoOnWhileAPartitionWaitsToBeTakenOut() {
        keep(5);
        Connection holder = holder();
        try {
            CompletableFuture<List<Progress>> run = Retention.of(DAILY, Duration.ofDays(2))
                    .run(pool)
                    .collectList()
                    .toFuture();
            awaitWaitingDetach();

            assertThat(run(consumer(), TestDelivery.orders("m", 50))).allMatch(Outcome.Applied.class::isInstance);
            assertThat(run).isNotDone();

            Mono.from(holder.rollbackTransaction()).block(LIMIT);
            assertThat(run.orTimeout(60, TimeUnit.SECONDS).join()).hasSize(3);
        } finally {
            Mono.from(holder.close()).block(LIMIT);
        }
        assertThat(exists(day(-5))).isFalse();
        assertThat(database.count("SELECT count(*) FROM claims")).isEqualTo(50);
    }

    private Connection holder() {
        Connection holder =
                Objects.requireNonNull(Mono.from(database.direct().create()).block(LIMIT));
        Mono.from(holder.beginTransaction()).block(LIMIT);
        DatabaseClient.create(
                        new SingleConnectionFactory(holder, database.direct().getMetadata(), true))
                .sql("INSERT INTO claims VALUES ('other', 'slow', now(), '"
                        + day(-5).toString().substring(0, 10) + "')")
                .then()
                .block(LIMIT);
        return holder;
    }

    private void awaitWaitingDetach() {
        await().until(() -> database.count(
                        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                                + " AND query LIKE '%DETACH PARTITION%' AND pid <> pg_backend_pid() AND wait_event_type = 'Lock'")
                == 1);
    }

    /** PostgreSQL leaves it half taken out then, and will take out no other one. */
    @Test
    void whatWasInterruptedIsFinishedByTheNextRun() {
        keep(5);
        Connection holder = holder();
        try {
            CompletableFuture<List<Progress>> run = Retention.of(DAILY, Duration.ofDays(2))
                    .run(pool)
                    .collectList()
                    .toFuture();
            awaitWaitingDetach();
            database.run("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
                    + " AND query LIKE '%DETACH PARTITION%' AND pid <> pg_backend_pid()");
            assertThatThrownBy(() -> run.orTimeout(60, TimeUnit.SECONDS).join())
                    .satisfies(error -> assertThat(SqlStates.stateOf(error)).isEqualTo("57014"));
        } finally {
            Mono.from(holder.close()).block(LIMIT);
        }
        assertThat(partitions()).hasSize(9);
        assertThat(exists(day(-5))).isTrue();
        placed.put("half out", day(-5));
        TestDelivery<Order> message = TestDelivery.order("half out");
        run(consumer(), message);
        assertThat(message.isDeadLettered()).isTrue();

        keep(2);

        assertThat(partitions()).hasSize(7);
        assertThat(exists(day(-5))).isFalse();
    }

    @Test
    void aRunThatIsCancelledLeavesNothingThatTheNextOneCannotFinish() {
        keep(5);
        Connection holder = holder();
        try {
            Disposable run = Retention.of(DAILY, Duration.ofDays(2)).run(pool).subscribe();
            awaitWaitingDetach();
            run.dispose();
        } finally {
            Mono.from(holder.close()).block(LIMIT);
        }
        await().atMost(LIMIT).ignoreExceptions().untilAsserted(() -> {
            keep(2);
            assertThat(partitions()).hasSize(7);
            assertThat(exists(day(-5))).isFalse();
        });
    }

    @Test
    void whatWasTakenOutAndNotDroppedIsDroppedUnlessAPersonHasTakenItOut() {
        keep(5);
        database.run("ALTER TABLE claims DETACH PARTITION " + name(day(-5)));
        database.run(
                "DO $$ BEGIN EXECUTE format('COMMENT ON TABLE " + name(day(-4))
                        + " IS ''OnceFlux: these claims of table %s are old, and are about to be dropped''', 'claims'::regclass::oid); END $$");
        database.run("ALTER TABLE claims DETACH PARTITION " + name(day(-4)));

        keep(3);

        assertThat(exists(day(-4))).isFalse();
        assertThat(exists(day(-5))).isTrue();
    }

    @Test
    void whoDoesNotOwnTheTableIsRefused() {
        database.run("DROP ROLE IF EXISTS tenant; CREATE ROLE tenant LOGIN PASSWORD 'tenant'");
        try {
            ConnectionPool tenants =
                    database.pool(2, database.configuration().username("tenant").password("tenant"));
            assertThatThrownBy(() -> Retention.of(DAILY, Duration.ofDays(2))
                            .run(tenants)
                            .then()
                            .block(LIMIT))
                    .isInstanceOf(InvalidSetupException.class)
                    .hasMessageContaining("Role tenant may not make and drop partitions of table claims")
                    .hasMessageContaining("ALTER TABLE \"claims\" OWNER TO \"tenant\";");
            tenants.disposeLater().block(LIMIT);
        } finally {
            database.run("DROP ROLE tenant");
        }
    }

    @Test
    void manyStartedAtOnceWithTheirRetentionApplyOnce() {
        keep(5);
        List<CompletableFuture<List<Outcome>>> both = Stream.generate(
                        () -> start(consumer(), TestDelivery.orders("m", 200)))
                .limit(2)
                .toList();
        for (int days : List.of(4, 3, 2)) {
            keep(days);
        }
        both.forEach(
                one -> assertThat(one.orTimeout(60, TimeUnit.SECONDS).join()).allMatch(Outcome::isDone));
        assertThat(database.effects()).isEqualTo(200);
    }
}
