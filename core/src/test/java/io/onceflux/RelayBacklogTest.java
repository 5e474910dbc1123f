package io.onceflux;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.onceflux.outbox.Outbox;
import io.onceflux.outbox.Relay;
import io.onceflux.postgres.OutboxTable;
import io.onceflux.postgres.OutboxTable.Lease;
import io.onceflux.postgres.OutboxTable.Taken;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.ConnectionFactoryMetadata;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Much that waits behind one entry of its key is not read again and again, and holds up no other key. */
class RelayBacklogTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final OutboxTable TABLE = OutboxTable.outbox();

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();

    @BeforeEach
    void createTable() {
        database.run(TABLE.createSql());
        database.run("ALTER TABLE outbox SET (autovacuum_enabled = off)"); // It would be counted.
    }

    @AfterEach
    void dropTable() {
        database.run("DROP TABLE outbox");
    }

    /** Of the kind "mail", each key's in turn. */
    private void append(String keyOfN, int from, int to) {
        database.run("INSERT INTO outbox (idempotency_key, kind, message_key, payload, header_names, header_values)"
                + " SELECT n::text, 'mail', %s, convert_to(n::text, 'UTF8'), '{}', '{}' FROM generate_series(%d, %d) n ORDER BY n + 0"
                        .formatted(keyOfN, from, to));
    }

    private Taken take(int most, boolean parkedBlock, String after) {
        return Objects.requireNonNull(Flux.usingWhen(
                        database.direct().create(),
                        connection -> Mono.from(connection.beginTransaction())
                                .then(TABLE.waitForTurn(connection, "mail"))
                                .then(Mono.defer(() -> TABLE.take(
                                        connection, "mail", most, Duration.ofMinutes(5), parkedBlock, after)))
                                .delayUntil(taken -> connection.commitTransaction()),
                        connection -> connection.close())
                .next()
                .block(LIMIT));
    }

    private static List<Long> numbers(Taken taken) {
        return taken.rows().stream().map(Lease::number).sorted().toList();
    }

    /** A session tells its numbers when it ends, at the latest. */
    private long pagesReadSoFar() {
        await().until(() -> database.count("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                        + " AND backend_type = 'client backend' AND pid <> pg_backend_pid()")
                == 0);
        return database.count("SELECT (heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit)::bigint"
                + " FROM pg_statio_user_tables WHERE relname = 'outbox'");
    }

    /** Statistics are often of a time when there was nothing to be sent. */
    @ParameterizedTest
    @CsvSource(
            delimiter = ';',
            value = {
                "parked_at = now(); true",
                "parked_at = now(); false",
                "due_at = now() + interval '1 hour', attempts = 1; true",
                "due_at = now() + interval '1 hour', attempts = 1; false"
            })
    void whatWaitsBehindOneOfItsKeyIsNotReadForTheOthers(String firstOfStuck, boolean statisticsAreFresh) {
        database.run("ANALYZE outbox");
        append("'stuck'", 1, 100_000);
        append("'k' || n % 7", 100_001, 100_700);
        database.run("UPDATE outbox SET %s WHERE number = 1".formatted(firstOfStuck));
        if (statisticsAreFresh) {
            database.run("ANALYZE outbox");
        }
        long before = pagesReadSoFar();

        Taken taken = take(14, true, "");

        assertThat(pagesReadSoFar() - before).isLessThan(1_000);
        assertThat(numbers(taken))
                .as("two of each key")
                .containsExactlyElementsOf(
                        LongStream.rangeClosed(100_001, 100_014).boxed().toList());
        assertThat(take(14, true, "").rows()).as("each key is taken").isEmpty();
    }

    /** More keys wait than are looked at at once. */
    @Test
    void eachKeyHasItsTurn() {
        append("'a' || lpad((n % 50)::text, 2, '0')", 1, 100);
        append("'z'", 101, 103);
        database.run("UPDATE outbox SET due_at = now() + interval '1 hour' WHERE number <= 50");

        Taken first = take(2, false, "");
        assertThat(first).isEqualTo(new Taken(List.of(), "a19"));
        Taken second = take(2, false, first.reached());
        assertThat(second).isEqualTo(new Taken(List.of(), "a39"));
        Taken third = take(2, false, second.reached());
        assertThat(numbers(third)).containsExactly(101L, 102L);
        assertThat(third.reached()).as("there is none behind").isEmpty();
    }

    /** It was committed late. */
    @Test
    void ofAKeyWithAParkedRowThoseBeforeItAreTakenAndNoneBehind() {
        append("'a'", 1, 200);
        append("'k'", 201, 203);
        append("'l'", 204, 206);
        database.run("UPDATE outbox SET parked_at = now() WHERE number IN (1, 202, 204)");
        assertThat(numbers(take(10, true, ""))).containsExactly(201L);
        assertThat(numbers(take(10, false, ""))).as("they go on without it").startsWith(2L);
    }

    @Test
    void aRelayGoesOnWithTheOtherKeysInTheirOrder() {
        append("'stuck'", 1, 20_000);
        append("'b' || n % 40", 20_001, 20_040);
        append("'k' || n % 5", 20_041, 21_040);
        Map<String, List<Integer>> arrived = new ConcurrentHashMap<>();
        List<Throwable> errors = new CopyOnWriteArrayList<>();
        ConnectionPool pool = database.pool(8);
        Relay relay = Relay.of(Outbox.in(TABLE))
                .to(
                        "mail",
                        message -> message.key().startsWith("k")
                                ? Mono.fromRunnable(() -> arrived.computeIfAbsent(
                                                message.key(), key -> new CopyOnWriteArrayList<>())
                                        .add(Integer.valueOf(new String(message.payload(), UTF_8))))
                                : Mono.error(new IOException("no such mailbox")))
                .batchSize(3)
                .workers(2)
                .backoff(Duration.ofMinutes(1), Duration.ofMinutes(1))
                .onError(errors::add)
                .build(pool);
        Disposable running = relay.run().subscribe();
        try {
            await().atMost(LIMIT)
                    .until(() -> arrived.values().stream().mapToInt(List::size).sum() == 1_000);
        } finally {
            relay.stop().block(LIMIT);
            await().until(running::isDisposed);
        }
        assertThat(arrived)
                .hasSize(5)
                .allSatisfy((key, numbers) -> assertThat(numbers).hasSize(200).isSorted());
        assertThat(errors).isEmpty();
        assertThat(database.count("SELECT count(*) FROM outbox WHERE sent_at IS NULL"))
                .isEqualTo(20_040);
    }

    /** It looks through all keys, but not again and again. */
    @Test
    void aRelayThatFindsNoKeyFreePauses() {
        append("'a' || lpad((n % 50)::text, 2, '0')", 1, 100);
        database.run("UPDATE outbox SET due_at = now() + interval '1 hour' WHERE number <= 50");
        AtomicInteger looks = new AtomicInteger();
        ConnectionPool pool = database.pool(4);
        Relay relay = Relay.of(Outbox.in(TABLE))
                .to("mail", message -> Mono.empty())
                .batchSize(2)
                .workers(1)
                .pollInterval(Duration.ofMinutes(10))
                .keepSentForEver()
                .build(new Counted(pool, looks));
        Disposable running = relay.run().subscribe();
        try {
            await().until(() -> looks.get() > 6);
            AtomicInteger before = new AtomicInteger();
            await("it looks more and more seldom")
                    .atMost(LIMIT)
                    .pollInterval(Duration.ofSeconds(1))
                    .until(() -> before.getAndSet(looks.get()) == looks.get());
        } finally {
            relay.stop().block(LIMIT);
            await().until(running::isDisposed);
        }
    }

    private record Counted(ConnectionPool pool, AtomicInteger taken) implements ConnectionFactory {

        @Override
        public Mono<Connection> create() {
            return pool.create().doOnSubscribe(any -> taken.incrementAndGet());
        }

        @Override
        public ConnectionFactoryMetadata getMetadata() {
            return pool.getMetadata();
        }
    }

    @Test
    void aTableWithoutTheIndexOfItsKeysIsRefused() {
        database.run("DROP INDEX outbox_keys_idx");
        Relay relay =
                Relay.of(Outbox.in(TABLE)).to("mail", message -> Mono.empty()).build(database.pool(4));
        assertThatThrownBy(() -> relay.run().blockLast(LIMIT))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("lacks an index of its keys")
                .hasMessageContaining("CREATE INDEX IF NOT EXISTS \"outbox_keys_idx\"");
        database.run(TABLE.createSql());
        Disposable running = relay.run().subscribe();
        relay.stop().block(LIMIT);
        await().until(running::isDisposed);
    }
}
