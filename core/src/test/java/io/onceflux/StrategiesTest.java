package io.onceflux;

import static io.onceflux.Consumers.policy;
import static org.assertj.core.api.Assertions.assertThat;

import io.onceflux.postgres.UniqueKey;
import io.onceflux.postgres.VersionGuard;
import io.r2dbc.pool.ConnectionPool;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.r2dbc.core.DatabaseClient.GenericExecuteSpec;
import org.springframework.transaction.annotation.Isolation;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Whatever the order and repetition of messages, on two instances at once, what is there in the end is what the messages leave that
 * come once and in order.
 */
class StrategiesTest {

    private static final int ENTITIES = 6;
    private static final int VERSIONS = 4;
    private static final VersionGuard NEWEST =
            VersionGuard.of("newest", "entity").withColumns("note");

    record Change(String entity, long version) {

        String id() {
            return entity + ":" + version;
        }

        GenericExecuteSpec bindTo(GenericExecuteSpec statement) {
            return statement.bind("entity", entity).bind("version", version);
        }
    }

    enum Strategy {
        CLAIM("SELECT coalesce(string_agg(entity || '=' || total, ',' ORDER BY entity), '') FROM totals") {
            @Override
            ConsumerBuilder<Change> describe(ConsumerBuilder<Change> consumer) {
                return consumer.effect(
                        (change, db) -> change.bindTo(db.sql("INSERT INTO totals VALUES (:entity, :version)"
                                        + " ON CONFLICT (entity) DO UPDATE SET total = totals.total + EXCLUDED.total"))
                                .then());
            }
        },
        NATURAL_KEY(
                "SELECT coalesce(string_agg(entity || ':' || version, ',' ORDER BY entity, version), '') FROM entries") {
            @Override
            ConsumerBuilder<Change> describe(ConsumerBuilder<Change> consumer) {
                return consumer.naturalKey(UniqueKey.of("entries", "entity", "version"))
                        .conditionalEffect(
                                (change, db) -> change.bindTo(
                                                db.sql(
                                                        "INSERT INTO entries VALUES (:entity, :version) ON CONFLICT DO NOTHING"))
                                        .fetch()
                                        .rowsUpdated(),
                                NoRows.DUPLICATE);
            }
        },
        CONDITIONAL_WRITE(
                "SELECT string_agg(entity || ':' || version || ':' || times, ',' ORDER BY entity, version) FROM steps") {
            @Override
            ConsumerBuilder<Change> describe(ConsumerBuilder<Change> consumer) {
                return consumer.conditionalEffect(
                        (change, db) -> change.bindTo(db.sql("UPDATE steps SET times = times + 1, state = 'done'"
                                        + " WHERE entity = :entity AND version = :version AND state = 'open'"))
                                .fetch()
                                .rowsUpdated(),
                        NoRows.DUPLICATE);
            }
        },
        VERSION_GUARD(
                "SELECT coalesce(string_agg(entity || ':' || version || ':' || note, ',' ORDER BY entity, version), '') FROM newest") {
            @Override
            ConsumerBuilder<Change> describe(ConsumerBuilder<Change> consumer) {
                return consumer.naturalKey(NEWEST.key())
                        .conditionalEffect(
                                (change, db) -> change.bindTo(db.sql(NEWEST.upsertSql()))
                                        .bind("note", change.id())
                                        .fetch()
                                        .rowsUpdated(),
                                NoRows.STALE);
            }
        },
        SET_A_VALUE(
                "SELECT string_agg(entity || ':' || version || ':' || state, ',' ORDER BY entity, version) FROM steps") {
            @Override
            ConsumerBuilder<Change> describe(ConsumerBuilder<Change> consumer) {
                return consumer.withoutClaims()
                        .effect((change, db) -> change.bindTo(
                                        db.sql(
                                                "UPDATE steps SET state = 'done' WHERE entity = :entity AND version = :version"))
                                .then());
            }
        };

        final String state;

        Strategy(String state) {
            this.state = state;
        }

        abstract ConsumerBuilder<Change> describe(ConsumerBuilder<Change> consumer);
    }

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();

    @BeforeEach
    void createTables() {
        database.run("""
                CREATE TABLE totals (entity text PRIMARY KEY, total bigint NOT NULL);
                CREATE TABLE entries (entity text, version bigint, PRIMARY KEY (entity, version));
                CREATE TABLE steps (entity text, version bigint, state text NOT NULL, times int NOT NULL DEFAULT 0,
                                    PRIMARY KEY (entity, version));
                CREATE TABLE newest (entity text PRIMARY KEY, version bigint NOT NULL, note text NOT NULL)""");
    }

    @AfterEach
    void dropTables() {
        database.run("DROP TABLE totals, entries, steps, newest");
    }

    private void begin() {
        database.empty();
        database.run("TRUNCATE totals, entries, steps, newest");
        database.run(
                "INSERT INTO steps SELECT 'e' || e, v, 'open' FROM generate_series(1, %d) e, generate_series(1, %d) v"
                        .formatted(ENTITIES, VERSIONS));
    }

    static Stream<Arguments> cases() {
        return Stream.of(Strategy.values())
                .flatMap(strategy -> Stream.of(Isolation.DEFAULT, Isolation.SERIALIZABLE)
                        .flatMap(isolation ->
                                IntStream.range(0, 2).mapToObj(seed -> Arguments.of(strategy, isolation, seed))));
    }

    private static List<Change> changes(Random random) {
        List<Change> all = new ArrayList<>();
        for (int entity = 1; entity <= ENTITIES; entity++) {
            for (int version = 1; version <= VERSIONS; version++) {
                int times = 1 + random.nextInt(4);
                all.addAll(Collections.nCopies(times, new Change("e" + entity, version)));
            }
        }
        Collections.shuffle(all, random);
        return all;
    }

    private CompletableFuture<List<Outcome>> start(
            Strategy strategy, Isolation isolation, int maxBatch, Collection<Change> changes) {
        ConnectionPool pool = database.pool(6);
        IdempotentConsumer<Change> consumer = strategy.describe(IdempotentConsumer.<Change>named("strategies")
                        .identifiedBy(Change::id)
                        .lanes(4)
                        .maxBatch(maxBatch)
                        .isolation(isolation)
                        .failurePolicy(policy().build()))
                .build(pool);
        return Flux.fromIterable(changes)
                .<Delivery<Change>>map(change -> new TestDelivery<>(change.id(), change))
                .transform(consumer)
                .collectList()
                .toFuture();
    }

    private List<Outcome> handle(Strategy strategy, Isolation isolation, int maxBatch, Collection<Change> changes) {
        return Objects.requireNonNull(
                Mono.fromFuture(start(strategy, isolation, maxBatch, changes)).block(Duration.ofSeconds(60)));
    }

    @ParameterizedTest
    @MethodSource("cases")
    void whateverTheOrderAndRepetitionTheEndIsTheSame(Strategy strategy, Isolation isolation, int seed) {
        Random random = new Random(seed);
        int maxBatch = seed % 2 == 0 ? 1 : 16;
        List<Change> changes = changes(random);
        List<Change> others = changes(random);
        begin();
        CompletableFuture<List<Outcome>> elsewhere = start(strategy, isolation, maxBatch, others);
        List<Outcome> outcomes = new ArrayList<>(handle(strategy, isolation, maxBatch, changes));
        outcomes.addAll(elsewhere.join());
        List<String> repeated = database.texts(strategy.state);

        begin();
        handle(strategy, isolation, 1, new LinkedHashSet<>(changes));

        assertThat(repeated).isEqualTo(database.texts(strategy.state));
        assertThat(outcomes).hasSize(changes.size() + others.size()).noneMatch(Outcome.Failed.class::isInstance);
    }
}
