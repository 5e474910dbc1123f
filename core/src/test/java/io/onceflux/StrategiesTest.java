package io.onceflux;

import static io.onceflux.Consumers.policy;
import static java.util.stream.Collectors.counting;
import static java.util.stream.Collectors.groupingBy;
import static org.assertj.core.api.Assertions.assertThat;

import io.onceflux.postgres.ClaimTable;
import io.onceflux.postgres.UniqueKey;
import io.onceflux.postgres.VersionGuard;
import io.r2dbc.pool.ConnectionPool;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.r2dbc.core.DatabaseClient;
import org.springframework.r2dbc.core.DatabaseClient.GenericExecuteSpec;
import org.springframework.transaction.annotation.Isolation;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Whatever the order and repetition of messages, on two instances at once, what is there in the end is what the messages leave that
 * come once and in order; and each outcome says what has happened. Every effect writes a line into a table without any unique key, so that
 * nothing but OnceFlux keeps it from being there twice.
 */
class StrategiesTest {

    private static final int ENTITIES = 6;
    private static final int VERSIONS = 4;

    private static final int[] BATCHES = {1, 2, 7, 64};
    private static final UniqueKey ENTRY = UniqueKey.of("entries", "entity", "version");
    private static final VersionGuard NEWEST =
            VersionGuard.of("newest", "entity").withColumns("note");

    record Change(String entity, long version) {

        String id() {
            return entity + ":" + version;
        }

        GenericExecuteSpec bindTo(GenericExecuteSpec statement) {
            return statement.bind("entity", entity).bind("version", version);
        }

        Mono<Long> rowsOf(DatabaseClient db, String sql) {
            return bindTo(db.sql(sql)).fetch().rowsUpdated();
        }

        /** One for each time that it is called. */
        Mono<Long> writeLine(DatabaseClient db) {
            return rowsOf(db, "INSERT INTO lines (entity, version) VALUES (:entity, :version)");
        }
    }

    private static final List<Change> CHANGES = IntStream.rangeClosed(1, ENTITIES)
            .boxed()
            .flatMap(
                    entity -> IntStream.rangeClosed(1, VERSIONS).mapToObj(version -> new Change("e" + entity, version)))
            .toList();

    private static final List<Change> LAST =
            CHANGES.stream().filter(change -> change.version == VERSIONS).toList();

    /** How often a message is applied, of all its copies. */
    enum Promise {
        ONCE,
        /** Not where it was overtaken. */
        ONCE_OR_STALE,
        EACH_TIME
    }

    private static final String TOTALS = "SELECT entity || '=' || total FROM totals ORDER BY entity";
    private static final String ENTRIES = "SELECT entity || ':' || version FROM entries ORDER BY entity, version";
    private static final String STEPS =
            "SELECT entity || ':' || version || ' ' || state || ' ' || times FROM steps ORDER BY entity, version";
    private static final String NEWEST_NOTES =
            "SELECT entity || ':' || version || ' ' || note FROM newest ORDER BY entity";

    private static final String ADD = "INSERT INTO totals VALUES (:entity, :version)"
            + " ON CONFLICT (entity) DO UPDATE SET total = totals.total + EXCLUDED.total";
    private static final String ENTER = "INSERT INTO entries VALUES (:entity, :version) ON CONFLICT DO NOTHING";
    private static final String STEP = "UPDATE steps SET times = times + 1, state = 'done'"
            + " WHERE entity = :entity AND version = :version AND state = 'open'";

    /** A statement that decides, and a line behind it. */
    private static ConditionalEffect<Change> deciding(String sql) {
        ConditionalEffect<Change> decides = (change, db) -> change.rowsOf(db, sql);
        return decides.then((change, db) -> change.writeLine(db));
    }

    enum Strategy {
        CLAIM(Promise.ONCE, Outcome.Duplicate.class, TOTALS) {
            @Override
            ConsumerBuilder<Change> describe(ConsumerBuilder<Change> consumer) {
                return consumer.effect((change, db) -> change.rowsOf(db, ADD).then(change.writeLine(db)));
            }

            @Override
            Stream<String> left() {
                return LAST.stream().map(change -> change.entity + "=" + VERSIONS * (VERSIONS + 1) / 2);
            }
        },
        CLAIM_FOR_A_BATCH_EFFECT(Promise.ONCE, Outcome.Duplicate.class, TOTALS) {
            @Override
            ConsumerBuilder<Change> describe(ConsumerBuilder<Change> consumer) {
                return consumer.batchEffect((changes, db) -> Flux.fromIterable(changes)
                        .concatMap(change -> change.rowsOf(db, ADD).then(change.writeLine(db))));
            }

            @Override
            Stream<String> left() {
                return CLAIM.left();
            }
        },
        /** What a broken claim let through, the condition would call stale. */
        CLAIM_AND_CONDITION(Promise.ONCE, Outcome.Duplicate.class, STEPS) {
            @Override
            ConsumerBuilder<Change> describe(ConsumerBuilder<Change> consumer) {
                return consumer.claimTable(ClaimTable.processedMessages())
                        .conditionalEffect(deciding(STEP), NoRows.STALE);
            }

            @Override
            Stream<String> left() {
                return CONDITIONAL_WRITE.left();
            }
        },
        NATURAL_KEY(Promise.ONCE, Outcome.Duplicate.class, ENTRIES) {
            @Override
            ConsumerBuilder<Change> describe(ConsumerBuilder<Change> consumer) {
                return consumer.naturalKey(ENTRY).conditionalEffect(deciding(ENTER), NoRows.DUPLICATE);
            }

            @Override
            Stream<String> left() {
                return CHANGES.stream().map(Change::id);
            }
        },
        /** What is written before it turns out that nothing happens is undone. */
        NATURAL_KEY_BEHIND_A_LINE(Promise.ONCE, Outcome.Duplicate.class, ENTRIES) {
            @Override
            ConsumerBuilder<Change> describe(ConsumerBuilder<Change> consumer) {
                return consumer.naturalKey(ENTRY)
                        .conditionalEffect(
                                (change, db) -> change.writeLine(db).then(change.rowsOf(db, ENTER)), NoRows.DUPLICATE);
            }

            @Override
            Stream<String> left() {
                return CHANGES.stream().map(Change::id);
            }
        },
        CONDITIONAL_WRITE(Promise.ONCE, Outcome.Duplicate.class, STEPS) {
            @Override
            ConsumerBuilder<Change> describe(ConsumerBuilder<Change> consumer) {
                return consumer.withoutClaims().conditionalEffect(deciding(STEP), NoRows.DUPLICATE);
            }

            @Override
            Stream<String> left() {
                return CHANGES.stream().map(change -> change.id() + " done 1");
            }
        },
        VERSION_GUARD(Promise.ONCE_OR_STALE, Outcome.Stale.class, NEWEST_NOTES) {
            @Override
            ConsumerBuilder<Change> describe(ConsumerBuilder<Change> consumer) {
                ConditionalEffect<Change> upsert = (change, db) -> change.bindTo(db.sql(NEWEST.upsertSql()))
                        .bind("note", "note " + change.id())
                        .fetch()
                        .rowsUpdated();
                return consumer.naturalKey(NEWEST.key())
                        .conditionalEffect(upsert.then((change, db) -> change.writeLine(db)), NoRows.STALE);
            }

            @Override
            Stream<String> left() {
                return LAST.stream().map(change -> change.id() + " note " + change.id());
            }
        },
        SET_A_VALUE(Promise.EACH_TIME, Outcome.Applied.class, STEPS) {
            @Override
            ConsumerBuilder<Change> describe(ConsumerBuilder<Change> consumer) {
                return consumer.withoutClaims()
                        .effect((change, db) -> change.rowsOf(
                                        db,
                                        "UPDATE steps SET state = 'done' WHERE entity = :entity AND version = :version")
                                .then(change.writeLine(db)));
            }

            @Override
            Stream<String> left() {
                return CHANGES.stream().map(change -> change.id() + " done 0");
            }
        };

        final Promise promise;
        final Class<? extends Outcome> ofOthers;
        final String state;

        /**
         * @param ofOthers the outcome of what is not applied
         * @param state the SQL that shows what there is in the end
         */
        Strategy(Promise promise, Class<? extends Outcome> ofOthers, String state) {
            this.promise = promise;
            this.ofOthers = ofOthers;
            this.state = state;
        }

        abstract ConsumerBuilder<Change> describe(ConsumerBuilder<Change> consumer);

        /** What there is if all come once and in order, worked out by hand. */
        abstract Stream<String> left();
    }

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();

    @BeforeEach
    void createTables() {
        database.run("""
                CREATE TABLE lines (number bigint GENERATED ALWAYS AS IDENTITY, entity text NOT NULL, version bigint NOT NULL);
                CREATE TABLE totals (entity text PRIMARY KEY, total bigint NOT NULL);
                CREATE TABLE entries (entity text, version bigint, PRIMARY KEY (entity, version));
                CREATE TABLE steps (entity text, version bigint, state text NOT NULL, times int NOT NULL DEFAULT 0,
                                    PRIMARY KEY (entity, version));
                CREATE TABLE newest (entity text PRIMARY KEY, version bigint NOT NULL, note text NOT NULL)""");
        database.run(
                "INSERT INTO steps SELECT 'e' || e, v, 'open' FROM generate_series(1, %d) e, generate_series(1, %d) v"
                        .formatted(ENTITIES, VERSIONS));
    }

    @AfterEach
    void dropTables() {
        database.run("DROP TABLE lines, totals, entries, steps, newest");
    }

    /** Who says that transactions are SERIALIZABLE. */
    enum Snapshots {
        NOBODY,
        CONSUMER,
        CONNECTION
    }

    static Stream<Arguments> cases() {
        return Stream.of(Strategy.values())
                .flatMap(strategy -> Stream.of(Snapshots.values())
                        .flatMap(snapshots ->
                                IntStream.range(0, 2).mapToObj(seed -> Arguments.of(strategy, snapshots, seed))));
    }

    /** Each at least once, in any order. */
    private static List<TestDelivery<Change>> deliveries(Random random) {
        List<Change> all = new ArrayList<>();
        CHANGES.forEach(change -> all.addAll(Collections.nCopies(1 + random.nextInt(4), change)));
        Collections.shuffle(all, random);
        return all.stream()
                .map(change -> new TestDelivery<>(change.id(), change))
                .toList();
    }

    private CompletableFuture<List<Outcome>> start(
            Strategy strategy, Snapshots snapshots, Random random, List<TestDelivery<Change>> deliveries) {
        ConnectionPool pool = database.pool(
                10,
                snapshots == Snapshots.CONNECTION
                        ? database.configuration().options(Map.of("default_transaction_isolation", "serializable"))
                        : database.configuration());
        ConsumerBuilder<Change> consumer = strategy.describe(IdempotentConsumer.<Change>named("strategies")
                .identifiedBy(Change::id)
                .lanes(1 + random.nextInt(8))
                .maxBatch(BATCHES[random.nextInt(BATCHES.length)])
                .isolation(snapshots == Snapshots.CONSUMER ? Isolation.SERIALIZABLE : Isolation.DEFAULT)
                .failurePolicy(policy().build()));
        if (random.nextBoolean()) {
            consumer.orderedBy(Change::entity);
        }
        if (strategy.ofOthers == Outcome.Duplicate.class && random.nextBoolean()) {
            consumer.recentKeys(RecentKeys.of(1 + random.nextInt(50), Duration.ofMinutes(1)));
        }
        return Flux.<Delivery<Change>>fromIterable(deliveries)
                .transform(consumer.build(pool))
                .collectList()
                .toFuture();
    }

    /** By two instances. */
    private List<Outcome> handle(
            Strategy strategy,
            Snapshots snapshots,
            Random random,
            List<TestDelivery<Change>> deliveries,
            List<TestDelivery<Change>> others) {
        CompletableFuture<List<Outcome>> elsewhere = start(strategy, snapshots, random, others);
        CompletableFuture<List<Outcome>> here = start(strategy, snapshots, random, deliveries);
        return Stream.of(here, elsewhere)
                .map(outcomes -> outcomes.orTimeout(60, TimeUnit.SECONDS).join())
                .flatMap(List::stream)
                .toList();
    }

    @ParameterizedTest
    @MethodSource("cases")
    void whateverTheOrderAndRepetitionTheEndIsTheSameAndTheOutcomesSayWhatHappened(
            Strategy strategy, Snapshots snapshots, int seed) {
        Random random = new Random(strategy.name().hashCode() + seed);
        List<TestDelivery<Change>> deliveries = deliveries(random);
        List<TestDelivery<Change>> others = deliveries(random);
        List<Outcome> outcomes = handle(strategy, snapshots, random, deliveries, others);

        assertThat(database.texts(strategy.state))
                .containsExactlyElementsOf(strategy.left().toList());
        assertThat(outcomes).hasSize(deliveries.size() + others.size());
        assertThat(Stream.concat(deliveries.stream(), others.stream()))
                .as("told to their source once each")
                .allMatch(TestDelivery::isAcknowledged);
        Map<String, Long> applied = applied(outcomes);
        assertThat(lines()).as("what was done, and what is said of it").isEqualTo(applied);
        assertThat(outcomes)
                .filteredOn(outcome -> !(outcome instanceof Outcome.Applied))
                .allMatch(strategy.ofOthers::isInstance);
        switch (strategy.promise) {
            case ONCE -> assertThat(applied.values()).hasSize(CHANGES.size()).containsOnly(1L);
            case ONCE_OR_STALE -> {
                assertThat(applied.values()).containsOnly(1L);
                assertThat(applied.keySet())
                        .containsAll(LAST.stream().map(Change::id).toList());
            }
            case EACH_TIME ->
                assertThat(applied.values().stream().mapToLong(Long::longValue).sum())
                        .isEqualTo(outcomes.size());
        }
    }

    private static Map<String, Long> applied(List<Outcome> outcomes) {
        return outcomes.stream()
                .filter(Outcome.Applied.class::isInstance)
                .collect(groupingBy(
                        outcome -> Objects.requireNonNull(outcome.key()).id(), TreeMap::new, counting()));
    }

    private Map<String, Long> lines() {
        return database.texts("SELECT entity || ':' || version FROM lines").stream()
                .collect(groupingBy(line -> line, TreeMap::new, counting()));
    }

    /** Who came later has overtaken nobody: a stale message writes nothing, not even a line. */
    @ParameterizedTest
    @MethodSource("snapshots")
    void versionsOfAnEntityAreWrittenInTheirOrder(Snapshots snapshots) {
        Random random = new Random(7);
        assertThat(handle(Strategy.VERSION_GUARD, snapshots, random, deliveries(random), deliveries(random)))
                .isNotEmpty();
        assertThat(database.texts("SELECT entity || ' ' || version FROM (SELECT *, lag(version) OVER"
                        + " (PARTITION BY entity ORDER BY number) AS before FROM lines) AS l WHERE before >= version"))
                .isEmpty();
    }

    static Stream<Snapshots> snapshots() {
        return Stream.of(Snapshots.values());
    }
}
