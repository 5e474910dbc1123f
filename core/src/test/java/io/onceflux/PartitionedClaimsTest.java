package io.onceflux;

import static io.onceflux.Consumers.batches;
import static io.onceflux.Consumers.failureOf;
import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.policy;
import static io.onceflux.Consumers.run;
import static io.onceflux.Consumers.start;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.onceflux.postgres.Buckets;
import io.onceflux.postgres.ClaimTable;
import io.onceflux.postgres.MissingPartitionException;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.spi.Connection;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.r2dbc.connection.ConnectionFactoryUtils;
import org.springframework.r2dbc.connection.R2dbcTransactionManager;
import org.springframework.transaction.annotation.Isolation;
import org.springframework.transaction.reactive.TransactionalOperator;
import reactor.core.publisher.Mono;

/** Claims in partitions: a message is once for as long as its partition is there, and is not run after that. */
class PartitionedClaimsTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final Duration WEEK = Duration.ofDays(7);

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(12);
    private final ClaimTable daily = ClaimTable.named("claims").partitionedBy(Buckets.daily());
    private final ClaimTable hourly = ClaimTable.named("claims").partitionedBy(Buckets.hourly());
    private final Instant now = Instant.now();
    private final Map<String, Instant> placed = new ConcurrentHashMap<>();

    @BeforeEach
    void dropTables() {
        database.run("DROP TABLE IF EXISTS claims, plain, another");
    }

    private void create(ClaimTable table) {
        table.create(pool).block(LIMIT);
        Retention.of(table, WEEK).run(pool).then().block(LIMIT);
    }

    private ConsumerBuilder<Order> in(ClaimTable table, ConsumerBuilder<Order> consumer) {
        return consumer.claimTable(table).bucketedBy(order -> placed.getOrDefault(order.id(), now));
    }

    private TestDelivery<Order> order(String id, Instant time) {
        placed.put(id, time);
        return TestDelivery.order(id);
    }

    private long claims() {
        return database.count("SELECT count(*) FROM claims");
    }

    /** O1: what decides is the message's time in UTC, wherever the clocks of the servers stand. */
    @ParameterizedTest
    @CsvSource({"1, false", "1, true", "64, false", "64, true"})
    void aMessageAtTheBoundaryOfItsPartitionIsOneMessageInEveryTimeZone(int maxBatch, boolean byHour) {
        ClaimTable table = byHour ? hourly : daily;
        create(table);
        Instant midnight = now.truncatedTo(ChronoUnit.DAYS);
        order("just before", midnight.minusMillis(1));
        order("just at", midnight);
        order("late in Auckland", midnight.plus(Duration.ofHours(11)));
        List<String> ids = List.copyOf(placed.keySet());
        for (String zone : List.of("Pacific/Auckland", "America/Los_Angeles", "UTC")) {
            ConnectionPool inZone = database.pool(
                    12, database.configuration().options(Map.of("timezone", zone, "datestyle", "german")));
            run(
                    in(table, batches(maxBatch, Order::apply)).build(inZone),
                    ids.stream().map(TestDelivery::order).toList());
        }

        assertThat(database.effects()).isEqualTo(3);
        assertThat(claims()).isEqualTo(3);
        assertThat(database.count("SELECT count(DISTINCT tableoid) FROM claims WHERE message_key LIKE 'just%'"))
                .isEqualTo(2);
    }

    @ParameterizedTest
    @EnumSource(
            value = Isolation.class,
            names = {"READ_COMMITTED", "REPEATABLE_READ", "SERIALIZABLE"})
    void twoInstancesApplyEachMessageOnce(Isolation isolation) {
        create(daily);
        List<String> ids = new ArrayList<>(IntStream.range(0, 200)
                .mapToObj(n -> "m" + n)
                .peek(id -> placed.put(id, now.minus(Duration.ofHours(id.hashCode() % 100))))
                .toList());
        List<CompletableFuture<List<Outcome>>> both = new ArrayList<>();
        for (int maxBatch : List.of(1, 64)) {
            both.add(start(
                    in(daily, batches(maxBatch, Order::apply))
                            .isolation(isolation)
                            .build(pool),
                    ids.stream().map(TestDelivery::order).toList()));
            Collections.reverse(ids);
        }

        assertThat(both)
                .allSatisfy(one ->
                        assertThat(one.orTimeout(60, TimeUnit.SECONDS).join()).allMatch(Outcome::isDone));
        assertThat(database.effects()).isEqualTo(200);
        assertThat(claims()).isEqualTo(200);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 64})
    void whatIsBeyondWhatIsKeptBecomesADeadLetterAndHoldsUpNobody(int maxBatch) {
        create(daily);
        Plug plug = new Plug();
        List<TestDelivery<Order>> deliveries = plug.before(List.of(
                order("a", now),
                order("too old", now.minus(Duration.ofDays(9))),
                order("b", now),
                order("too old", now.minus(Duration.ofDays(9))),
                order("too far ahead", now.plus(Duration.ofDays(5)))));

        List<Outcome> outcomes =
                plug.run(in(daily, batches(maxBatch, plug.then(Order::apply))).build(pool), deliveries);

        assertThat(outcomes)
                .filteredOn(Outcome.Failed.class::isInstance)
                .hasSize(3)
                .allSatisfy(failed -> assertThat(failureOf(failed).kind()).isEqualTo(FailureKind.PERMANENT))
                .extracting(failed -> failureOf(failed).reason())
                .anyMatch(reason -> reason.endsWith("if it was applied, its claim is gone"))
                .anyMatch(reason -> reason.contains("more than PT72H ahead of the server's clock"));
        assertThat(deliveries).filteredOn(TestDelivery::isDeadLettered).hasSize(3);
        assertThat(deliveries).filteredOn(TestDelivery::isAcknowledged).hasSize(3);
        assertThat(database.effects()).isEqualTo(3);
        assertThat(claims()).isEqualTo(3);
    }

    /** O1: nobody has made it. */
    @Test
    void aMissingPartitionIsWaitedForAndNothingBecomesADeadLetter() {
        create(daily);
        Instant tomorrow = now.plus(Duration.ofDays(1));
        dropPartitionsFrom(tomorrow);
        IdempotentConsumer<Order> consumer =
                in(daily, orders(Order::apply)).downAfter(Duration.ofMillis(1)).build(pool);
        List<TestDelivery<Order>> deliveries = List.of(order("today", now), order("tomorrow", tomorrow));
        CompletableFuture<List<Outcome>> outcomes = start(consumer, deliveries);
        await().untilAsserted(() -> {
            assertThat(consumer.health().status()).isEqualTo(Health.Status.DOWN);
            assertThat(consumer.health().toString())
                    .contains("the claim table public.claims has no partition for the claim: the last one ends at");
            assertThat(deliveries.get(0).isAcknowledged()).isTrue();
        });
        assertThat(deliveries.get(1).settlements()).isEmpty();

        Retention.of(daily, WEEK).run(pool).then().block(LIMIT);

        assertThat(outcomes.orTimeout(30, TimeUnit.SECONDS).join()).allMatch(Outcome.Applied.class::isInstance);
        assertThat(database.effects()).isEqualTo(2);
    }

    /** Others show that the database is well, and nothing about a partition that none of them needs. */
    @Test
    void whileOthersAreAppliedAMissingPartitionIsOneTroubleThatLasts() {
        create(daily);
        Instant tomorrow = now.plus(Duration.ofDays(1));
        dropPartitionsFrom(tomorrow);
        RecordingListener told = new RecordingListener();
        IdempotentConsumer<Order> consumer = in(daily, orders(Order::apply))
                .failurePolicy(policy().quarantineAfter(2).build())
                .listener(told)
                .build(pool);
        TestDelivery<Order> waiting = order("tomorrow", tomorrow);
        CompletableFuture<List<Outcome>> outcomes = start(consumer, List.of(waiting));
        await().until(() -> consumer.health().status() == Health.Status.DOWN);
        Health before = consumer.health();
        AtomicInteger others = new AtomicInteger();
        await().atMost(LIMIT).until(() -> {
            assertThat(run(consumer, order("today " + others.incrementAndGet(), now)))
                    .isInstanceOf(Outcome.Applied.class);
            return told.retries.size() > 12;
        });

        assertThat(waiting.settlements()).isEmpty();
        assertThat(told.held).containsExactly(FailureKind.BROKEN_SETUP);
        assertThat(told.resumed).hasValue(0);
        assertThat(consumer.health()).isEqualTo(before);

        Retention.of(daily, WEEK).run(pool).then().block(LIMIT);
        assertThat(outcomes.orTimeout(30, TimeUnit.SECONDS).join()).hasOnlyElementsOfType(Outcome.Applied.class);
        assertThat(told.resumed).hasValue(1);
        assertThat(consumer.health().status()).isEqualTo(Health.Status.UP);
        assertThat(database.effects()).isEqualTo(1 + others.get());
    }

    @Test
    void aTroubleThatLastsIsOverWhenNobodyWaitsForThePartitionAnyMore() {
        create(daily);
        Instant tomorrow = now.plus(Duration.ofDays(1));
        dropPartitionsFrom(tomorrow);
        IdempotentConsumer<Order> consumer = in(daily, orders(Order::apply)).build(pool);
        TestDelivery<Order> waiting = order("tomorrow", tomorrow);
        CompletableFuture<List<Outcome>> outcomes = start(consumer, List.of(waiting));
        await().until(() -> consumer.health().status() == Health.Status.DOWN);
        waiting.channelLost();

        assertThat(outcomes.orTimeout(30, TimeUnit.SECONDS).join()).isEmpty();
        assertThat(consumer.health().status()).isEqualTo(Health.Status.UP);
    }

    @Test
    void othersOfABatchGoOnWhileOneOfItWaitsForItsPartition() {
        create(daily);
        Instant tomorrow = now.plus(Duration.ofDays(1));
        dropPartitionsFrom(tomorrow);
        Plug plug = new Plug();
        RecordingListener told = new RecordingListener();
        IdempotentConsumer<Order> consumer = in(daily, batches(64, plug.then(Order::apply)))
                .failurePolicy(policy().quarantineAfter(2).build())
                .listener(told)
                .build(pool);
        List<TestDelivery<Order>> deliveries = new ArrayList<>(TestDelivery.orders("m", 20));
        TestDelivery<Order> waiting = order("tomorrow", tomorrow);
        deliveries.add(7, waiting);
        CompletableFuture<List<Outcome>> outcomes = plug.start(consumer, plug.before(deliveries));
        plug.pull();
        await().until(() -> told.count(Outcome.Applied.class) == 21);
        int before = told.retries.size();
        await().until(() -> told.retries.size() > before + 5);

        assertThat(waiting.settlements()).isEmpty();
        assertThat(told.held).containsExactly(FailureKind.BROKEN_SETUP);
        assertThat(told.resumed).hasValue(0);

        Retention.of(daily, WEEK).run(pool).then().block(LIMIT);
        assertThat(outcomes.orTimeout(30, TimeUnit.SECONDS).join())
                .hasSize(22)
                .hasOnlyElementsOfType(Outcome.Applied.class);
        assertThat(database.effects()).isEqualTo(22);
    }

    /** Whether it was seen before or not, the first word says what to do, and doing that is enough. */
    @ParameterizedTest
    @CsvSource({"1, false, true", "64, false, false", "1, true, false", "64, true, true"})
    void aGapHoldsItsMessagesAndSaysHowItIsMended(int maxBatch, boolean byHour, boolean seenBefore) {
        ClaimTable table = byHour ? hourly : daily;
        create(table);
        RecordingListener told = new RecordingListener();
        IdempotentConsumer<Order> consumer =
                in(table, batches(maxBatch, Order::apply)).listener(told).build(pool);
        Instant yesterday = now.minus(Duration.ofDays(1));
        if (seenBefore) {
            run(consumer, order("before", yesterday));
        }
        dropPartitionOf(yesterday, byHour);
        TestDelivery<Order> waiting = order("yesterday", yesterday);
        CompletableFuture<List<Outcome>> outcomes = start(consumer, List.of(waiting));
        await().until(() -> consumer.health().status() == Health.Status.DOWN);

        Instant from = yesterday.truncatedTo(byHour ? ChronoUnit.HOURS : ChronoUnit.DAYS);
        Instant to = from.plus(1, byHour ? ChronoUnit.HOURS : ChronoUnit.DAYS);
        String reason = consumer.health().troubles().get(0).reason();
        assertThat(reason)
                .startsWith(
                        "io.onceflux.postgres.MissingPartitionException: the claim table public.claims has no partition"
                                + " for the claim: the message is of " + yesterday + ", and from " + from + " to " + to
                                + " there is none, although there are later ones: it was dropped or detached, with its claims.");
        assertThat(waiting.settlements()).isEmpty();

        database.run(reason.substring(reason.indexOf("CREATE TABLE")));
        assertThat(outcomes.orTimeout(30, TimeUnit.SECONDS).join()).hasOnlyElementsOfType(Outcome.Applied.class);
        assertThat(told.held).containsExactly(FailureKind.BROKEN_SETUP);
        assertThat(told.resumed).hasValue(1);
        assertThatCode(() -> Retention.of(table, WEEK).run(pool).then().block(LIMIT))
                .doesNotThrowAnyException();
    }

    private void dropPartitionOf(Instant time, boolean byHour) {
        database.run("DROP TABLE claims_p"
                + time.toString().substring(0, byHour ? 13 : 10).replaceAll("[-T]", ""));
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aCallerIsToldWhichPartitionIsMissing(boolean gap) {
        create(daily);
        IdempotentConsumer<Order> consumer = in(daily, orders(Order::apply))
                .processBudget(Duration.ofMillis(300))
                .build(pool);
        assertThat(consumer.process(order("before", now)).block(LIMIT)).isInstanceOf(Outcome.Applied.class);
        if (gap) {
            dropPartitionOf(now, false);
        } else {
            dropPartitionsFrom(now);
        }
        TestDelivery<Order> delivery = order("now", now);
        Failure failure =
                failureOf(Objects.requireNonNull(consumer.process(delivery).block(LIMIT)));

        assertThat(failure.kind()).isEqualTo(FailureKind.BROKEN_SETUP);
        assertThat(failure.reason())
                .startsWith("MissingPartitionException: the claim table public.claims has no partition for the claim: "
                        + (gap ? "the message is of " : "the last one ends at "));
        assertThat(delivery.settlements()).isEmpty();
        assertThat(consumer.health().status()).isEqualTo(Health.Status.DOWN);
        assertThat(consumer.health().troubles())
                .singleElement()
                .satisfies(calls -> assertThat(calls.reason()).isEqualTo(failure.reason()));
    }

    /** There is one, and the server refuses the claim all the same: a partition that is itself divided lacks a part. */
    @Test
    void aPartOfAPartitionThatIsMissingIsOneTroubleToo() {
        create(daily);
        dropPartitionOf(now, false);
        Instant today = now.truncatedTo(ChronoUnit.DAYS);
        database.run(
                "CREATE TABLE claims_divided PARTITION OF claims FOR VALUES FROM ('%s') TO ('%s') PARTITION BY LIST (consumer)"
                        .formatted(day(today), day(today.plus(Duration.ofDays(1)))));
        RecordingListener told = new RecordingListener();
        IdempotentConsumer<Order> consumer = in(daily, orders(Order::apply))
                .failurePolicy(policy().quarantineAfter(2).build())
                .listener(told)
                .build(pool);
        CompletableFuture<List<Outcome>> outcomes = start(consumer, List.of(order("now", now)));
        AtomicInteger others = new AtomicInteger();
        await().atMost(LIMIT).until(() -> {
            run(consumer, order("other " + others.incrementAndGet(), now.minus(Duration.ofDays(1))));
            return told.retries.size() > 12;
        });
        assertThat(told.held).containsExactly(FailureKind.BROKEN_SETUP);
        assertThat(told.resumed).hasValue(0);

        database.run("CREATE TABLE claims_part PARTITION OF claims_divided DEFAULT");
        assertThat(outcomes.orTimeout(30, TimeUnit.SECONDS).join()).hasOnlyElementsOfType(Outcome.Applied.class);
    }

    private static String day(Instant time) {
        return time.toString().substring(0, 10);
    }

    private void dropPartitionsFrom(Instant time) {
        String first = time.toString().substring(0, 10).replace("-", "");
        database.texts("SELECT c.relname FROM pg_class c JOIN pg_inherits i ON i.inhrelid = c.oid WHERE c.relkind = 'r'"
                        + " AND i.inhparent = 'claims'::regclass AND c.relname >= 'claims_p" + first + "'")
                .forEach(name -> database.run("DROP TABLE " + name));
    }

    /** What the consumer has seen of the partitions is no longer so. */
    @ParameterizedTest
    @ValueSource(ints = {1, 64})
    void aMessageThatComesAgainAfterItsPartitionWasDroppedIsNotAppliedAgain(int maxBatch) {
        create(daily);
        Instant old = now.minus(Duration.ofDays(6));
        IdempotentConsumer<Order> consumer =
                in(daily, batches(maxBatch, Order::apply)).build(pool);
        assertThat(run(consumer, order("old", old))).isInstanceOf(Outcome.Applied.class);
        assertThat(run(consumer, order("old", old))).isInstanceOf(Outcome.Duplicate.class);

        Retention.of(daily, Duration.ofDays(2)).run(pool).then().block(LIMIT);
        TestDelivery<Order> again = order("old", old);
        List<Outcome> outcomes = run(consumer, List.of(again, order("new", now)));

        assertThat(outcomes).hasAtLeastOneElementOfType(Outcome.Applied.class);
        assertThat(again.isDeadLettered()).isTrue();
        assertThat(database.effectsOf("old")).isEqualTo(1);
        assertThat(database.effectsOf("new")).isEqualTo(1);
    }

    /** A consumer lives for longer than its partitions, and asks now and then whether a claim that is nobody's can be written. */
    @Test
    void whetherTheTableTakesClaimsIsKnownWhenAllPartitionsThatWereSeenAreGone() {
        create(daily);
        Claims claims = Claims.in(daily);
        Mono.usingWhen(pool.create(), one -> claims.verify(one, "loyalty"), Connection::close)
                .then()
                .block(LIMIT);
        database.run("DROP TABLE claims");
        ClaimTable later = ClaimTable.named("claims").partitionedBy(Buckets.daily());
        later.create(pool).block(LIMIT);
        String inAMonth = now.plus(Duration.ofDays(30)).toString().substring(0, 10);
        String dayAfter = now.plus(Duration.ofDays(31)).toString().substring(0, 10);
        database.run("CREATE TABLE claims_later PARTITION OF claims FOR VALUES FROM ('%s') TO ('%s')"
                .formatted(inAMonth, dayAfter));

        TransactionalOperator transactions = TransactionalOperator.create(new R2dbcTransactionManager(pool));
        Mono<Boolean> tryOut = transactions.transactional(ConnectionFactoryUtils.getConnection(pool)
                .flatMap(one -> claims.tryOut(one, new MessageKey("loyalty", "nobody's"), Duration.ofSeconds(1))));
        assertThatThrownBy(() -> tryOut.block(LIMIT)).isInstanceOf(MissingPartitionException.class);
        assertThat(tryOut.block(LIMIT)).isTrue();
    }

    @Test
    void theTimeMayBeAPartOfTheId() {
        create(hourly);
        String id = "%012x".formatted(now.toEpochMilli());
        String uuid = id.substring(0, 8) + "-" + id.substring(8) + "-7abc-8abc-0123456789ab";
        IdempotentConsumer<Order> consumer = orders(Order::apply)
                .claimTable(hourly)
                .bucketedByKey(KeyTime.uuidV7())
                .build(pool);

        assertThat(run(consumer, TestDelivery.order(uuid))).isInstanceOf(Outcome.Applied.class);
        assertThat(run(consumer, TestDelivery.order(uuid))).isInstanceOf(Outcome.Duplicate.class);
        TestDelivery<Order> timeless = TestDelivery.order("1");
        assertThat(failureOf(run(consumer, timeless)).reason()).contains("is no UUID of version 7");
        assertThat(timeless.isDeadLettered()).isTrue();
        assertThat(database.texts(
                        "SELECT to_char(bucket AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') FROM claims"))
                .containsExactly(now.truncatedTo(ChronoUnit.HOURS).toString());
    }

    @Test
    void aMessageWithoutATimeIsADeadLetter() {
        create(daily);
        IdempotentConsumer<Order> consumer = orders(Order::apply)
                .claimTable(daily)
                .bucketedBy(order -> {
                    if (order.id().equals("throws")) {
                        throw new IllegalStateException("no time");
                    }
                    return null;
                })
                .build(pool);

        assertThat(failureOf(run(consumer, TestDelivery.order("null"))).reason())
                .isEqualTo("bucketedBy returned null for the message");
        assertThat(failureOf(run(consumer, TestDelivery.order("throws"))).reason())
                .contains("bucketedBy threw", "no time");
        assertThat(database.effects()).isZero();
    }

    @Test
    void fingerprintsAreComparedInPartitionsToo() {
        ClaimTable table = daily.withFingerprintColumn("fingerprint");
        create(table);
        IdempotentConsumer<Order> consumer = in(table, batches(64, Order::apply))
                .fingerprintedBy(order -> order.customer() + " " + order.points())
                .build(pool);
        run(consumer, List.of(order("1", now), order("2", now.minus(Duration.ofDays(3)))));

        List<TestDelivery<Order>> again =
                List.of(TestDelivery.order("1"), TestDelivery.of(new Order("2", "another", 1)), order("3", now));
        run(consumer, again);

        assertThat(again.get(0).isAcknowledged()).isTrue();
        assertThat(again.get(1).isDeadLettered()).isTrue();
        assertThat(again.get(2).isAcknowledged()).isTrue();
        assertThat(database.effects()).isEqualTo(3);
    }

    @Test
    void aCallerClaimsWithTheTimeOfTheMessage() {
        create(daily);
        TransactionalOperator callers = TransactionalOperator.create(new R2dbcTransactionManager(pool));
        IdempotentConsumer<Order> consumer = in(daily, orders(Order::apply)).build(pool);

        assertThat(callers.transactional(consumer.claimInTransaction("1", now)).block(LIMIT))
                .isTrue();
        assertThat(callers.transactional(consumer.claimInTransaction("1", now)).block(LIMIT))
                .isFalse();
        assertThatThrownBy(() -> callers.transactional(consumer.claimInTransaction("1", now.minus(Duration.ofDays(30))))
                        .block(LIMIT))
                .isInstanceOf(PermanentFailure.class)
                .hasMessageContaining("its claim is gone");
        assertThatThrownBy(() ->
                        callers.transactional(consumer.claimInTransaction("1")).block(LIMIT))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("use claimInTransaction(messageId, time)");
        assertThatThrownBy(() -> callers.transactional(
                                orders(Order::apply).build(pool).claimInTransaction("1", now))
                        .block(LIMIT))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("use claimInTransaction(messageId)");
    }

    @Test
    void whoKeepsClaimsInPartitionsSaysInWhich() {
        assertThatThrownBy(() -> orders(Order::apply).claimTable(daily).build(pool))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("use bucketedByKey(...) or bucketedBy(...)");
        assertThatThrownBy(
                        () -> orders(Order::apply).bucketedByKey(KeyTime.ulid()).build(pool))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("has no buckets: leave it out");
        assertThatThrownBy(() -> Buckets.daily().ahead(Duration.ofHours(2)))
                .hasMessageContaining("ahead must be from PT24H to 366 days, but is PT2H");
        assertThatThrownBy(() -> Retention.of(daily, WEEK).forConsumer("loyalty"))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("dropped whole: leave out forConsumer(\"loyalty\")");
    }

    @Test
    void aTableThatCannotKeepClaimsInPartitionsIsRefused() {
        assertRefused("claims", "Table claims does not exist");

        daily.create(pool).block(LIMIT);
        assertRefused("claims", "has no partition yet. Let its Retention run once");

        database.run("CREATE TABLE plain (LIKE claims INCLUDING ALL)");
        assertRefused("plain", "is not partitioned by RANGE (bucket)");

        database.run("CREATE TABLE another (LIKE claims INCLUDING ALL) PARTITION BY HASH (message_key)");
        assertRefused("another", "is not partitioned by RANGE (bucket)");

        Retention.of(daily, WEEK).run(pool).then().block(LIMIT);
        assertThat(run(in(daily, orders(Order::apply)).build(pool), order("1", now)))
                .isInstanceOf(Outcome.Applied.class);
        database.run("CREATE TABLE others PARTITION OF claims DEFAULT");
        assertRefused("claims", "has a default partition");
        assertThatThrownBy(() -> Retention.of(daily, WEEK).run(pool).then().block(LIMIT))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("has a default partition");
        database.run(
                "DROP TABLE others; CREATE TABLE others PARTITION OF claims FOR VALUES FROM (MINVALUE) TO ('1999-01-01')");
        assertRefused("claims", "has no bounds in time on both sides");
        database.run("DROP TABLE claims");
        hourly.create(pool).block(LIMIT);
        assertRefused("claims", "has type timestamp with time zone, but a partition for each day needs date");
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aTableWithPartitionsThatWereNotDescribedIsRefusedWithTheCallThatDescribesThem(boolean byHour) {
        (byHour ? ClaimTable.named("claims").partitionedBy(Buckets.hourly().inColumn("time")) : daily)
                .create(pool)
                .block(LIMIT);

        assertThatThrownBy(() -> run(
                        orders(Order::apply)
                                .claimTable(ClaimTable.named("claims"))
                                .build(pool),
                        order("1", now)))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessage(
                        byHour
                                ? "Table claims is partitioned by column time, which its ClaimTable does not say."
                                        + " Use ClaimTable.partitionedBy(Buckets.hourly().inColumn(\"time\"))."
                                : "Table claims is partitioned by column bucket, which its ClaimTable does not say."
                                        + " Use ClaimTable.partitionedBy(Buckets.daily()).");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"RANGE (processed_at)", "LIST (bucket)", "RANGE (bucket, processed_at)", "RANGE ((bucket + 1))"})
    void aTableWithOtherPartitionsThanClaimsCanHaveIsRefused(String partitions) {
        database.run("CREATE TABLE claims (consumer text NOT NULL, message_key text NOT NULL,"
                + " processed_at timestamptz NOT NULL DEFAULT now(), bucket date) PARTITION BY " + partitions);

        assertThatThrownBy(() -> run(
                        orders(Order::apply)
                                .claimTable(ClaimTable.named("claims"))
                                .build(pool),
                        order("1", now)))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("Table claims is partitioned by ")
                .hasMessageContaining(
                        "PostgreSQL takes no unique index on (\"consumer\", \"message_key\") alone there.");
    }

    private void assertRefused(String name, String sentence) {
        ClaimTable table = ClaimTable.named(name).partitionedBy(Buckets.daily());
        assertThatThrownBy(() -> run(in(table, orders(Order::apply)).build(pool), order("1", now)))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining(sentence);
    }

    @Test
    void aConsumerThatStartsWithoutAPartitionForNowWarns() {
        create(daily);
        dropPartitionsFrom(now);
        RecordingListener told = new RecordingListener();

        run(in(daily, orders(Order::apply)).listener(told).build(pool), order("1", now.minus(Duration.ofDays(3))));

        assertThat(told.warnings)
                .anyMatch(warning -> warning.contains("has no partition for now, the last one ends at"));
        assertThat(database.effects()).isEqualTo(1);
    }

    @Test
    void aConsumerThatStartsWithGapsBetweenPartitionsWarnsOfEach() {
        create(daily);
        Instant other = now.minus(Duration.ofDays(2));
        dropPartitionOf(now, false);
        dropPartitionOf(other, false);
        dropPartitionOf(other.minus(Duration.ofDays(1)), false);
        RecordingListener told = new RecordingListener();

        run(in(daily, orders(Order::apply)).listener(told).build(pool), order("1", now.minus(Duration.ofDays(1))));

        assertThat(told.warnings)
                .hasSize(2)
                .allMatch(warning -> warning.startsWith(
                        "table claims has a gap between its partitions, whose messages are held: from "))
                .anyMatch(warning -> warning.endsWith("PARTITION OF \"claims\" FOR VALUES FROM ('%s') TO ('%s');"
                        .formatted(day(now), day(now.plus(Duration.ofDays(1))))))
                .anyMatch(warning -> warning.endsWith("FOR VALUES FROM ('%s') TO ('%s');"
                        .formatted(day(other.minus(Duration.ofDays(1))), day(other.plus(Duration.ofDays(1))))));
        assertThat(database.effects()).isEqualTo(1);
    }
}
