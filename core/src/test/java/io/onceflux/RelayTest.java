package io.onceflux;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.onceflux.outbox.Outbox;
import io.onceflux.outbox.OutboxEntry;
import io.onceflux.outbox.OutboxMessage;
import io.onceflux.outbox.Relay;
import io.onceflux.outbox.Relayed;
import io.onceflux.outbox.Target;
import io.onceflux.postgres.OutboxTable;
import io.onceflux.services.PostgresService;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.spi.Connection;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;
import reactor.core.scheduler.Schedulers;
import reactor.test.StepVerifier;

/** What is in the outbox arrives, in the order of its key, whatever becomes of relays, target and database. */
class RelayTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final OutboxTable TABLE = OutboxTable.outbox();

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(30);
    private final Outbox outbox = Outbox.in(TABLE);
    private final List<Running> relays = new ArrayList<>();

    @BeforeEach
    void createTable() {
        TABLE.create(pool).block(LIMIT);
    }

    @AfterEach
    void dropTable() {
        relays.forEach(Running::stop);
        database.run("DROP TABLE outbox");
    }

    /** What has arrived. */
    private static final class Receiver implements Target {

        final List<OutboxMessage> all = new CopyOnWriteArrayList<>();
        final Map<String, List<String>> byKey = new ConcurrentHashMap<>();

        @Override
        public Mono<Void> send(OutboxMessage message) {
            return Mono.fromRunnable(() -> {
                all.add(message);
                byKey.computeIfAbsent(message.key(), none -> new CopyOnWriteArrayList<>())
                        .add(bodyOf(message));
            });
        }
    }

    private static String bodyOf(OutboxMessage message) {
        return new String(message.payload(), UTF_8);
    }

    private final class Running {

        final Relay relay;
        final List<Relayed> told = new CopyOnWriteArrayList<>();
        final List<Throwable> errors = new CopyOnWriteArrayList<>();
        final AtomicBoolean completed = new AtomicBoolean();
        final Disposable subscription;

        Running(Relay.Builder builder) {
            relay = builder.onError(errors::add).build(pool);
            subscription = relay.run().subscribe(told::add, errors::add, () -> completed.set(true));
            relays.add(this);
        }

        long count(Class<? extends Relayed> what) {
            return told.stream().filter(what::isInstance).count();
        }

        void stop() {
            if (!subscription.isDisposed()) {
                relay.stop().block(LIMIT);
                await().until(completed::get);
            }
        }
    }

    private Relay.Builder to(Target target) {
        return Relay.of(outbox)
                .to("mail", target)
                .backoff(Duration.ofMillis(20), Duration.ofMillis(200))
                .pollInterval(Duration.ofMillis(200));
    }

    private void append(String key, int from, int to) {
        Flux.usingWhen(
                        database.direct().create(),
                        connection -> Flux.range(from, to - from)
                                .concatMap(n -> outbox.appendAs(
                                        connection, key + "/" + n, OutboxEntry.of("mail", key, bytes(n)))),
                        Connection::close)
                .then()
                .block(LIMIT);
    }

    private static byte[] bytes(int n) {
        return Integer.toString(n).getBytes(UTF_8);
    }

    private static List<String> numbers(int count) {
        return IntStream.range(0, count).mapToObj(Integer::toString).toList();
    }

    private OutboxTable.State state() {
        return Objects.requireNonNull(outbox.state(pool).block(LIMIT));
    }

    private long pending() {
        return state().pending();
    }

    @Test
    void whatEffectsAppendArrivesOnce() {
        Receiver receiver = new Receiver();
        Running running = new Running(to(receiver));
        Consumers.run(
                Consumers.batches(
                                50,
                                (order, db) -> order.apply(db)
                                        .then(outbox.append(
                                                db,
                                                "mail",
                                                order.customer(),
                                                order.id().getBytes(UTF_8),
                                                Map.of("language", "de", "empty", ""))))
                        .build(pool),
                TestDelivery.orders("m", 500));
        await().until(() -> running.count(Relayed.Sent.class) == 500);

        assertThat(receiver.all)
                .hasSize(500)
                .extracting(OutboxMessage::idempotencyKey)
                .doesNotHaveDuplicates();
        assertThat(receiver.all).allSatisfy(message -> {
            assertThat(message.headers()).containsExactlyInAnyOrderEntriesOf(Map.of("language", "de", "empty", ""));
            assertThat(message.attempt()).isEqualTo(1);
            assertThat(message.key()).isEqualTo("c-" + bodyOf(message));
        });
        assertThat(pending()).isZero();
        assertThat(database.count("SELECT count(*) FROM outbox WHERE sent_at IS NOT NULL"))
                .isEqualTo(500);
    }

    /** Case O4. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void threeRelaysKeepTheOrderOfEachKeyAndParkWhatCanNeverBeSent(boolean parkedBlocks) {
        for (int key = 0; key < 100; key++) {
            append("k" + key, 0, 50);
        }
        Receiver receiver = new Receiver();
        Target target = message -> message.key().equals("k7") && bodyOf(message).equals("20")
                ? Mono.error(new IOException("no such mailbox"))
                : message.key().equals("k8")
                                && message.attempt() == 1
                                && bodyOf(message).endsWith("3")
                        ? Mono.error(new IOException("not now"))
                        : receiver.send(message);
        List<Running> three = IntStream.range(0, 3)
                .mapToObj(i -> {
                    Relay.Builder builder = to(target).maxAttempts(4).batchSize(37);
                    return new Running(parkedBlocks ? builder.parkedBlocksItsKey() : builder);
                })
                .toList();
        int expected = parkedBlocks ? 4_970 : 4_999;
        await().atMost(LIMIT)
                .until(() -> three.stream()
                                        .mapToLong(one -> one.count(Relayed.Sent.class))
                                        .sum()
                                == expected
                        && state().parked() == 1);

        assertThat(receiver.all).hasSize(expected);
        receiver.byKey.forEach((key, bodies) -> {
            if (!key.equals("k7")) {
                assertThat(bodies).as(key).isEqualTo(numbers(50));
            }
        });
        assertThat(Objects.requireNonNull(receiver.byKey.get("k7")).stream()
                        .map(Integer::valueOf)
                        .toList())
                .isSorted()
                .hasSize(parkedBlocks ? 20 : 49);
        assertThat(outbox.parked(pool).collectList().block(LIMIT))
                .singleElement()
                .satisfies(row -> {
                    assertThat(row.key()).isEqualTo("k7");
                    assertThat(row.attempts()).isEqualTo(4);
                    assertThat(row.reason()).contains("IOException", "no such mailbox");
                });
        assertThat(three.stream()
                        .mapToLong(one -> one.count(Relayed.Parked.class))
                        .sum())
                .isEqualTo(1);
        assertThat(three.stream()
                        .filter(one -> one.count(Relayed.Sent.class) > 0)
                        .count())
                .as("all have a share")
                .isEqualTo(3);
        assertThat(pending()).isEqualTo(parkedBlocks ? 29 : 0);
    }

    @Test
    void whatIsParkedIsResumedWithTheSameKey() {
        append("k", 0, 3);
        AtomicBoolean mended = new AtomicBoolean();
        Receiver receiver = new Receiver();
        List<String> keys = new CopyOnWriteArrayList<>();
        new Running(to(message -> {
            if (bodyOf(message).equals("1")) {
                keys.add(message.idempotencyKey());
            }
            return bodyOf(message).equals("1") && !mended.get()
                    ? Mono.error(new PermanentFailure("the address is unknown"))
                    : receiver.send(message);
        }));
        await().until(() -> state().parked() == 1 && pending() == 0);
        mended.set(true);
        OutboxTable.ParkedRow parked =
                Objects.requireNonNull(outbox.parked(pool).blockFirst(LIMIT));
        assertThat(parked.attempts()).as("at once").isEqualTo(1);
        assertThat(outbox.resume(pool, parked.number()).block(LIMIT)).isTrue();
        assertThat(outbox.resume(pool, parked.number()).block(LIMIT)).isFalse();
        await().until(() -> receiver.all.size() == 3);
        assertThat(keys).hasSize(2).containsOnly("k/1");
        await().until(() -> state().parked() == 0 && pending() == 0);
    }

    /** Numbers are given before the commit: who goes by the last one that was sent passes over it. */
    @Test
    void whatIsCommittedLateIsNotPassedOver() {
        Receiver receiver = new Receiver();
        Running running = new Running(to(receiver));
        Sinks.Empty<Void> commit = Sinks.empty();
        var late = Flux.usingWhen(
                        database.direct().create(),
                        connection -> Mono.from(connection.beginTransaction())
                                .then(outbox.appendAs(connection, "late", OutboxEntry.of("mail", "late", bytes(0))))
                                .publishOn(Schedulers.boundedElastic())
                                .doOnSuccess(done -> append("early", 0, 5))
                                .then(commit.asMono())
                                .then(Mono.from(connection.commitTransaction())),
                        Connection::close)
                .then()
                .toFuture();
        await().until(() -> running.count(Relayed.Sent.class) == 5);
        commit.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);
        late.join();
        await().until(() -> running.count(Relayed.Sent.class) == 6);
        assertThat(receiver.byKey).containsKey("late");
    }

    /** Case O5. */
    @Test
    void whileTheTableCannotBeWrittenNothingIsLostAndEachSendHasTheSameKey() {
        Receiver receiver = new Receiver();
        AtomicInteger sends = new AtomicInteger();
        Running running = new Running(to(message -> receiver.send(message)
                        .doOnSuccess(done -> {
                            if (sends.incrementAndGet() == 1) {
                                database.run("""
                                CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
                                    AS 'BEGIN RAISE EXCEPTION ''not now'' USING ERRCODE = ''53100''; END';
                                CREATE TRIGGER refuse BEFORE UPDATE ON outbox FOR EACH ROW EXECUTE FUNCTION refuse()""");
                            }
                        })
                        .subscribeOn(Schedulers.boundedElastic()))
                .sendLimit(Duration.ofMillis(500))
                .lease(Duration.ofSeconds(1)));
        append("k", 0, 3);
        await().until(() -> running.errors.size() >= 5);
        assertThat(pending()).isEqualTo(3);
        database.run("DROP FUNCTION refuse() CASCADE");
        await().until(() -> pending() == 0);

        assertThat(receiver.all.stream().map(RelayTest::bodyOf).distinct()).containsExactly("0", "1", "2");
        assertThat(receiver.all)
                .hasSizeGreaterThan(3)
                .allSatisfy(message -> assertThat(message.idempotencyKey()).isEqualTo("k/" + bodyOf(message)));
        assertThat(database.count("SELECT count(*) FROM outbox")).isEqualTo(3);
    }

    @Test
    void aRelayThatIsCancelledLeavesWhatItHasToOthersAtOnce() {
        append("k", 0, 10);
        AtomicInteger begun = new AtomicInteger();
        Running one = new Running(to(message -> {
                    begun.incrementAndGet();
                    return Mono.never();
                })
                .lease(Duration.ofMinutes(10)));
        await().until(() -> begun.get() == 1);
        one.subscription.dispose();

        Receiver receiver = new Receiver();
        new Running(to(receiver));
        await().until(() -> receiver.all.size() == 10);
        assertThat(receiver.byKey.get("k")).isEqualTo(numbers(10));
    }

    /** As the end of a process leaves it. */
    @Test
    void whatSomebodyHadWhoIsGoneIsSentOnceTheLeaseIsOver() {
        append("k", 0, 3);
        Flux.usingWhen(
                        database.direct().create(),
                        connection -> Mono.from(connection.beginTransaction())
                                .then(TABLE.waitForTurn(connection, "mail"))
                                .then(TABLE.take(connection, "mail", 2, Duration.ofSeconds(2), false, ""))
                                .then(Mono.from(connection.commitTransaction())),
                        Connection::close)
                .then()
                .block(LIMIT);
        Receiver receiver = new Receiver();
        new Running(to(receiver));
        await().during(Duration.ofMillis(500)).until(receiver.all::isEmpty);
        await().until(() -> receiver.all.size() == 3);
        assertThat(receiver.byKey.get("k")).isEqualTo(numbers(3));
        assertThat(receiver.all.get(0).attempt())
                .as("the time that nobody saw the end of counts")
                .isEqualTo(2);
    }

    @Test
    void aStopLetsEndWhatIsUnderWayAndLeavesTheRest() {
        append("k", 0, 10);
        Sinks.Empty<Void> go = Sinks.empty();
        AtomicInteger begun = new AtomicInteger();
        Receiver receiver = new Receiver();
        Running running = new Running(to(message -> {
            begun.incrementAndGet();
            return go.asMono().then(receiver.send(message));
        }));
        await().until(() -> begun.get() == 1);
        var stopped = running.relay.stop().toFuture();
        assertThat(stopped).isNotDone();
        go.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);
        stopped.join();
        assertThat(receiver.byKey.get("k")).containsExactly("0");
        assertThat(running.count(Relayed.Sent.class)).isEqualTo(1);
        assertThat(pending()).isEqualTo(9);
        assertThat(database.count(
                        "SELECT count(*) FROM outbox WHERE sent_at IS NULL AND due_at <= now() AND attempts = 0"))
                .isEqualTo(9);
    }

    @Test
    void aTargetThatDoesNotAnswerCountsAsNotSent() {
        append("k", 0, 1);
        Receiver receiver = new Receiver();
        Running running = new Running(to(message -> message.attempt() == 1 ? Mono.never() : receiver.send(message))
                .sendLimit(Duration.ofMillis(100)));
        await().until(() -> receiver.all.size() == 1);
        await().until(() -> running.count(Relayed.Sent.class) == 1);
        assertThat(running.count(Relayed.Failed.class)).isEqualTo(1);
    }

    @Test
    void aTargetThatThrowsOrAnswersWithNothingCountsAsNotSent() {
        append("k", 0, 1);
        append("l", 0, 1);
        Receiver receiver = new Receiver();
        Running running = new Running(to(message -> {
            if (message.attempt() == 1) {
                throw new IllegalStateException(message.key().equals("k") ? "thrown" : null);
            }
            return receiver.send(message);
        }));
        await().until(() -> running.count(Relayed.Sent.class) == 2);
        assertThat(running.count(Relayed.Failed.class)).isEqualTo(2);
        assertThat(running.errors).isEmpty();
    }

    @Test
    void aTargetWhoseCodeIsBrokenEndsNoWorker() {
        append("k", 0, 10);
        append("l", 0, 10);
        AtomicInteger broken = new AtomicInteger(30);
        Receiver receiver = new Receiver();
        Running running = new Running(to(message -> {
            if (broken.getAndDecrement() > 0) {
                throw new LinkageError("a class is missing");
            }
            return receiver.send(message);
        }));
        await().until(() -> running.count(Relayed.Sent.class) == 20);
        assertThat(receiver.byKey.get("k")).isEqualTo(numbers(10));
    }

    /** What has the same key waits for one that was appended before and is committed late, even if it is first. */
    @Test
    void oneKeyIsNeverSentByTwoAtATime() {
        AtomicInteger atATime = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        Receiver receiver = new Receiver();
        Target slow = message -> Mono.defer(() -> {
                    most.accumulateAndGet(atATime.incrementAndGet(), Math::max);
                    return Mono.delay(Duration.ofMillis(3));
                })
                .then(receiver.send(message))
                .doOnTerminate(atATime::decrementAndGet);
        new Running(to(slow).batchSize(3));
        new Running(to(slow).batchSize(5));
        Flux.range(0, 20)
                .flatMap(
                        writer -> Flux.usingWhen(
                                database.direct().create(),
                                connection -> Flux.range(0, 10)
                                        .concatMap(n -> Mono.from(connection.beginTransaction())
                                                .then(outbox.appendAs(
                                                        connection,
                                                        writer + "/" + n,
                                                        OutboxEntry.of("mail", "one", bytes(writer * 100 + n))))
                                                .then(Mono.delay(Duration.ofMillis(writer)))
                                                .then(Mono.from(connection.commitTransaction()))),
                                Connection::close),
                        10)
                .then()
                .block(LIMIT);
        await().until(() -> receiver.all.size() == 200);
        assertThat(most).hasValue(1);
    }

    /** The target of one kind is away, and much waits for it. */
    @Test
    void aKindWhoseTargetIsAwayHoldsUpNoOther() {
        database.run("INSERT INTO outbox (idempotency_key, kind, message_key, payload, header_names, header_values)"
                + " SELECT 'away' || n, 'away', 'k' || n % 1000, '', '{}', '{}' FROM generate_series(1, 100000) n");
        Receiver receiver = new Receiver();
        Running running = new Running(to(receiver).to("away", message -> Mono.error(new IOException("away"))));
        await().until(() -> running.count(Relayed.Failed.class) > 100);
        append("k", 0, 200);
        await().atMost(Duration.ofSeconds(20)).until(() -> receiver.all.size() == 200);
        assertThat(receiver.byKey.get("k")).isEqualTo(numbers(200));
    }

    /** Its answer was lost, and it is said once more; meanwhile somebody else has taken the rows. */
    @Test
    void whatIsWrittenDownLateHarmsNobodyWhoHasTheRowsNow() {
        append("k", 0, 2);
        ShortTransactions transactions = ShortTransactions.on(pool, LIMIT);
        List<OutboxTable.Lease> first = take(transactions);
        List<OutboxTable.Settled> said = List.of(
                new OutboxTable.Settled(first.get(0), OutboxTable.Fate.AGAIN, Duration.ofMillis(1), "failed"),
                new OutboxTable.Settled(first.get(1), OutboxTable.Fate.RELEASED, Duration.ZERO, ""));
        transactions
                .withoutTransaction(connection -> TABLE.settle(connection, "mail", said))
                .block(LIMIT);
        await().until(() -> database.count("SELECT count(*) FROM outbox WHERE due_at <= now()") == 2);
        assertThat(take(transactions)).hasSize(2);

        transactions
                .withoutTransaction(connection -> TABLE.settle(connection, "mail", said))
                .block(LIMIT);
        assertThat(take(transactions)).isEmpty();
    }

    private static List<OutboxTable.Lease> take(ShortTransactions transactions) {
        return Objects.requireNonNull(transactions
                .inTransaction(connection -> TABLE.waitForTurn(connection, "mail")
                        .then(Mono.defer(() -> TABLE.take(connection, "mail", 10, Duration.ofMinutes(1), false, ""))))
                .map(OutboxTable.Taken::rows)
                .block(LIMIT));
    }

    @Test
    void aWorkerWhoseLastBatchFailedSeesAtOnceWhatComes() {
        append("bad", 0, 1);
        Receiver receiver = new Receiver();
        Running running = new Running(to(message ->
                        message.key().equals("bad") ? Mono.error(new IOException("never")) : receiver.send(message))
                .workers(1)
                .maxAttempts(8)
                .backoff(Duration.ofMillis(1), Duration.ofMillis(2)));
        await().until(() -> running.count(Relayed.Parked.class) == 1);
        await("it has looked again").pollDelay(Duration.ofSeconds(1)).until(() -> pending() == 0);
        for (int i = 0; i < 5; i++) {
            append("good" + i, 0, 1);
        }
        await().until(() -> receiver.all.size() == 5);
    }

    /** As one that was frozen in the middle of taking. */
    @Test
    void whoHasTheTurnAndDoesNothingLosesIt() {
        append("k", 0, 3);
        Connection frozen =
                Objects.requireNonNull(Mono.from(database.direct().create()).block(LIMIT));
        try {
            Mono.from(frozen.beginTransaction())
                    .then(TABLE.waitForTurn(frozen, "mail"))
                    .block(LIMIT);
            Receiver receiver = new Receiver();
            new Running(to(receiver));
            await().atMost(LIMIT).until(() -> receiver.all.size() == 3);
        } finally {
            Mono.from(frozen.close()).onErrorComplete().block(LIMIT);
        }
    }

    @Test
    void aDatabaseThatIsAwayAtTheStartIsWaitedFor() {
        Receiver receiver = new Receiver();
        try (PostgresService postgres = PostgresService.start();
                Database away = Database.on(postgres)) {
            away.run(TABLE.createSql());
            postgres.kill();
            List<Throwable> errors = new CopyOnWriteArrayList<>();
            Relay relay = to(receiver)
                    .onError(error -> {
                        errors.add(error);
                        throw new IllegalStateException("nor can it be told");
                    })
                    .build(away.pool(4));
            Disposable running = relay.run().subscribe();
            await().until(() -> errors.size() >= 2);
            postgres.restart();
            away.run("INSERT INTO outbox (idempotency_key, kind, message_key, payload, header_names, header_values)"
                    + " VALUES ('1', 'mail', 'k', '', '{}', '{}')");
            await().until(() -> receiver.all.size() == 1);
            relay.stop().block(LIMIT);
            await().until(running::isDisposed);
        }
    }

    @Test
    void whatWasSentIsWrittenDownThoughNobodyAsksForIt() {
        append("k", 0, 300);
        Receiver receiver = new Receiver();
        Relay relay = to(receiver).batchSize(500).build(pool);
        StepVerifier.create(relay.run(), 1)
                .expectNextCount(1)
                .then(() -> await().until(() -> pending() == 0))
                .thenCancel()
                .verify(LIMIT);
        relay.stop().block(LIMIT);
        assertThat(receiver.all).hasSize(300);
    }

    @Test
    void kindsWithoutATargetAreLeftToOthers() {
        append("k", 0, 2);
        Running running = new Running(Relay.of(outbox).to("another", message -> Mono.empty()));
        Receiver receiver = new Receiver();
        new Running(to(receiver));
        await().until(() -> receiver.all.size() == 2);
        assertThat(running.told).isEmpty();
    }

    @Test
    void whatWasSentIsRemovedInTime() {
        Receiver receiver = new Receiver();
        new Running(to(receiver).keepSent(Duration.ofMillis(200)));
        append("k", 0, 5);
        await().until(() -> receiver.all.size() == 5);
        await().until(() -> database.count("SELECT count(*) FROM outbox") == 0);
    }

    /** The other process has an outbox of its own, so nothing wakes the relay but what PostgreSQL passes on. */
    @Test
    void aRelayOfAnotherProcessIsToldThatThereIsSomething() {
        Receiver receiver = new Receiver();
        new Running(to(receiver).workers(1).pollInterval(Duration.ofMinutes(10)).listenOn(database.direct()));
        await().until(() -> database.count("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                        + " AND query = 'LISTEN onceflux_outbox'")
                == 1);
        append("before", 0, 1); // It has looked, and will not again for long.
        await().until(() -> receiver.all.size() == 1);
        await("its pauses are long by now").pollDelay(Duration.ofSeconds(3)).until(() -> receiver.all.size() == 1);
        Outbox elsewhere = Outbox.in(TABLE);
        Disposable telling = elsewhere.tellingRelays(pool, error -> {}).subscribe();
        try {
            for (int i = 0; i < 3; i++) {
                String key = "key-" + i;
                int expected = i + 2;
                Flux.usingWhen(
                                database.direct().create(),
                                connection ->
                                        elsewhere.appendAs(connection, key, OutboxEntry.of("mail", "k", bytes(0))),
                                Connection::close)
                        .then()
                        .block(LIMIT);
                await().atMost(Duration.ofSeconds(1)).until(() -> receiver.all.size() == expected);
            }
        } finally {
            telling.dispose();
        }
    }

    @Test
    void sessionsThatBreakAreRiddenOut() {
        Receiver receiver = new Receiver();
        Running running =
                new Running(to(message -> Mono.delay(Duration.ofMillis(1)).then(receiver.send(message)))
                        .sendLimit(Duration.ofMillis(500))
                        .lease(Duration.ofSeconds(1)));
        for (int round = 0; round < 5; round++) {
            append("k" + round, 0, 100);
            database.terminateSessions();
        }
        await().until(() -> database.count("SELECT count(*) FROM outbox WHERE sent_at IS NULL") == 0);
        for (int round = 0; round < 5; round++) {
            List<String> bodies = Objects.requireNonNull(receiver.byKey.get("k" + round));
            assertThat(bodies.stream().distinct().toList()).isEqualTo(numbers(100));
        }
        assertThat(running.completed).isFalse();
    }

    @Test
    void aRelayRunsOnceAtATimeAndAgainAfterwards() {
        Receiver receiver = new Receiver();
        Relay relay = to(receiver).build(pool);
        Disposable first = relay.run().subscribe();
        await().until(() -> {
            append("k", receiver.all.size(), receiver.all.size() + 1);
            return !receiver.all.isEmpty();
        });
        assertThatThrownBy(() -> relay.run().blockLast(LIMIT)).hasMessageContaining("runs already");
        relay.stop().block(LIMIT);
        await().until(first::isDisposed);
        int before = receiver.all.size();
        Disposable second = relay.run().subscribe();
        append("again", 0, 1);
        await().until(() -> receiver.all.size() > before);
        relay.stop().block(LIMIT);
        await().until(second::isDisposed);
    }

    @Test
    void whatCannotWorkIsRefused() {
        assertThatThrownBy(() -> Relay.of(outbox).build(pool))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("no target");
        assertThatThrownBy(() ->
                        to(message -> Mono.empty()).lease(Duration.ofSeconds(5)).build(pool))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("lease must be at least twice the sendLimit");
        assertThatThrownBy(() -> to(message -> Mono.empty()).to("mail", message -> Mono.empty()))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("two targets");
        assertThatThrownBy(() -> Relay.of(Outbox.in(OutboxTable.named("nowhere")))
                        .to("mail", message -> Mono.empty())
                        .build(pool)
                        .run()
                        .blockLast(LIMIT))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("Table nowhere does not exist", "CREATE TABLE");
        database.run("ALTER TABLE outbox SET UNLOGGED");
        assertThatThrownBy(() -> to(message -> Mono.empty()).build(pool).run().blockLast(LIMIT))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("UNLOGGED");
    }
}
