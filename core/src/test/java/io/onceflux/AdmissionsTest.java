package io.onceflux;

import static io.onceflux.Consumers.batches;
import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.run;
import static io.onceflux.Consumers.start;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.onceflux.postgres.AdmissionTable;
import io.onceflux.postgres.Buckets;
import io.onceflux.postgres.ClaimTable;
import io.onceflux.postgres.DeadLetterTable;
import io.r2dbc.pool.ConnectionPool;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
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
import org.springframework.r2dbc.connection.R2dbcTransactionManager;
import org.springframework.transaction.annotation.Isolation;
import org.springframework.transaction.reactive.TransactionalOperator;
import reactor.core.publisher.Mono;

/** What is too old is applied, once, where somebody has said so and why. */
class AdmissionsTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final Duration WEEK = Duration.ofDays(7);

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(20);
    private final AdmissionTable table = AdmissionTable.admittedMessages();
    private final Admissions admissions = Admissions.in(table, pool);
    private final ClaimTable daily = ClaimTable.named("claims").partitionedBy(Buckets.daily());
    private final Instant now = Instant.now();

    @BeforeEach
    void createTables() {
        database.run("DROP TABLE IF EXISTS claims, admitted_messages, dead_letters");
        table.create(pool).block(LIMIT);
        daily.create(pool).block(LIMIT);
        Retention.of(daily, WEEK).run(pool).then().block(LIMIT);
        DeadLetterTable.deadLetters().create(pool).block(LIMIT);
    }

    private Instant timeOf(Order order) {
        return order.id().startsWith("old") ? now.minus(Duration.ofDays(9)) : now;
    }

    /** Refuses what begins with "old": for its window, or because there is no partition for it. */
    private ConsumerBuilder<Order> consumer(boolean inPartitions, ConsumerBuilder<Order> described) {
        return (inPartitions
                        ? described.claimTable(daily).bucketedBy(this::timeOf)
                        : described.sentAt(this::timeOf).redeliveryWindow(WEEK))
                .admissionTable(table);
    }

    private static MessageKey key(String id) {
        return MessageKey.of("loyalty", id);
    }

    /** They come, are refused, and admitted. */
    private void refuseAndAdmit(boolean inPartitions, String... ids) {
        IdempotentConsumer<Order> refusing =
                consumer(inPartitions, batches(64, Order::apply)).build(pool);
        assertThat(run(refusing, Arrays.stream(ids).map(TestDelivery::order).toList()))
                .allMatch(Outcome.Failed.class::isInstance);
        admit(ids);
    }

    private void admit(String... ids) {
        for (String id : ids) {
            assertThat(admissions.admit(key(id), "anna", "INC-7").block(LIMIT)).isTrue();
        }
    }

    private long used() {
        return database.count("SELECT count(*) FROM admitted_messages WHERE used_at IS NOT NULL");
    }

    @ParameterizedTest
    @CsvSource({"false, 1", "false, 64", "true, 1", "true, 64"})
    void ofThoseThatAreTooOldWhatWasAdmittedIsAppliedOnce(boolean inPartitions, int maxBatch) {
        refuseAndAdmit(inPartitions, "old 1", "old 2", "old, and never comes again");
        Plug plug = new Plug();
        IdempotentConsumer<Order> consumer = consumer(inPartitions, batches(maxBatch, plug.then(Order::apply)))
                .build(pool);
        List<TestDelivery<Order>> deliveries = plug.before(List.of(
                TestDelivery.order("old 1"),
                TestDelivery.order("new"),
                TestDelivery.order("old 3"),
                TestDelivery.order("old 1"),
                TestDelivery.order("old 2")));
        plug.run(consumer, deliveries);
        List<Outcome> again = run(
                consumer(inPartitions, batches(maxBatch, Order::apply)).build(pool),
                List.of(TestDelivery.order("old 2"), TestDelivery.order("old 1"), TestDelivery.order("old 3")));

        assertThat(deliveries)
                .filteredOn(TestDelivery::isDeadLettered)
                .singleElement()
                .satisfies(old -> assertThat(old.id()).isEqualTo("old 3"));
        assertThat(deliveries).filteredOn(TestDelivery::isAcknowledged).hasSize(deliveries.size() - 1);
        assertThat(again)
                .hasExactlyElementsOfTypes(Outcome.Duplicate.class, Outcome.Duplicate.class, Outcome.Failed.class);
        assertThat(database.effectsOf("old 1")).isOne();
        assertThat(database.effectsOf("old 2")).isOne();
        assertThat(database.effectsOf("old 3")).isZero();
        assertThat(database.effectsOf("new")).isOne();
        assertThat(used()).isEqualTo(2);
        assertThat(database.texts("SELECT h FROM admitted_messages, unnest(history) AS h"))
                .hasSize(3)
                .allMatch(line -> line.endsWith(" admitted by anna: INC-7"));
    }

    /** Several instances, and copies side by side. */
    @ParameterizedTest
    @EnumSource(
            value = Isolation.class,
            names = {"READ_COMMITTED", "REPEATABLE_READ", "SERIALIZABLE"})
    void copiesOnTwoInstancesAreAppliedOnce(Isolation isolation) {
        List<String> ids = IntStream.range(0, 60).mapToObj(n -> "old " + n).toList();
        refuseAndAdmit(false, ids.toArray(String[]::new));
        List<CompletableFuture<List<Outcome>>> all = new ArrayList<>();
        for (int instance = 0; instance < 4; instance++) {
            all.add(start(
                    consumer(instance % 2 == 0, batches(instance < 2 ? 1 : 16, Order::apply))
                            .isolation(isolation)
                            .build(pool),
                    ids.stream().map(TestDelivery::order).toList()));
        }

        assertThat(all)
                .allSatisfy(one ->
                        assertThat(one.orTimeout(60, TimeUnit.SECONDS).join()).allMatch(Outcome::isDone));
        assertThat(database.effects()).isEqualTo(60);
        assertThat(used()).isEqualTo(60);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void whereTheEffectFailsTheAdmissionIsStillThereForTheNextAttempt(boolean inPartitions) {
        refuseAndAdmit(inPartitions, "old");
        AtomicInteger attempts = new AtomicInteger();
        IdempotentConsumer<Order> consumer = consumer(
                        inPartitions,
                        orders((order, db) -> attempts.incrementAndGet() < 3
                                ? order.apply(db).then(Mono.error(new IllegalStateException("not yet")))
                                : order.apply(db)))
                .failurePolicy(Consumers.policy().maxAttempts(5).build())
                .build(pool);

        assertThat(run(consumer, TestDelivery.order("old"))).isInstanceOf(Outcome.Applied.class);
        assertThat(attempts).hasValue(3);
        assertThat(database.effects()).isOne();
    }

    /** Whoever admitted it was wrong. Claims are kept for longer than the window, and the admission must not outlive its claim. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aMessageWhoseClaimIsStillThereIsADuplicateAndStaysOneWhenTheClaimIsGone(boolean inPartitions) {
        IdempotentConsumer<Order> consumer = (inPartitions
                        ? orders(Order::apply).claimTable(daily).bucketedBy(order -> now.minus(Duration.ofDays(1)))
                        : orders(Order::apply))
                .sentAt(this::timeOf)
                .redeliveryWindow(WEEK)
                .admissionTable(table)
                .build(pool);
        if (inPartitions) {
            database.run("INSERT INTO claims (consumer, message_key, bucket) VALUES ('loyalty', 'old', '%s')"
                    .formatted(LocalDate.ofInstant(now.minus(Duration.ofDays(1)), ZoneOffset.UTC)));
        } else {
            database.run("INSERT INTO processed_messages VALUES ('loyalty', 'old', now() - interval '9 days')");
        }
        assertThat(run(consumer, TestDelivery.order("old"))).isInstanceOf(Outcome.Failed.class);
        admit("old");

        assertThat(run(consumer, TestDelivery.order("old"))).isInstanceOf(Outcome.Duplicate.class);
        database.run("DELETE FROM " + (inPartitions ? "claims" : "processed_messages"));
        assertThat(run(consumer, TestDelivery.order("old"))).isInstanceOf(Outcome.Duplicate.class);
        assertThat(database.effects()).isZero();
        assertThat(used()).isOne();
    }

    /** One that could still come in time would have a claim, and when that is gone, the admission besides. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void onlyWhatWasRefusedForItsAgeCanBeAdmitted(boolean inPartitions) {
        IdempotentConsumer<Order> consumer = consumer(inPartitions, orders(Order::apply))
                .sentAt(order -> order.id().equals("future") ? now.plus(Duration.ofDays(5)) : timeOf(order))
                .redeliveryWindow(WEEK)
                .build(pool);
        run(consumer, List.of(TestDelivery.order("future"), TestDelivery.order("new")));

        for (String id : List.of("future", "new", "never seen")) {
            assertThat(admissions.admit(key(id), "anna", "INC-7").block(LIMIT))
                    .as(id)
                    .isFalse();
        }
        assertThat(admissions.refused("loyalty").collectList().block(LIMIT)).isEmpty();
    }

    @Test
    void whatIsOfATimeToComeInPartitionsCannotBeAdmittedEither() {
        IdempotentConsumer<Order> consumer = orders(Order::apply)
                .claimTable(daily)
                .bucketedBy(order -> now.plus(Duration.ofDays(5)))
                .admissionTable(table)
                .build(pool);
        assertThat(run(consumer, TestDelivery.order("future"))).isInstanceOf(Outcome.Failed.class);

        assertThat(admissions.admit(key("future"), "anna", "INC-7").block(LIMIT))
                .isFalse();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void anotherContentUnderAnAdmittedIdIsAConflict(boolean inPartitions) {
        ClaimTable kept = ClaimTable.named(inPartitions ? "claims" : "plain").withFingerprintColumn("fingerprint");
        database.run("DROP TABLE claims; DROP TABLE IF EXISTS plain");
        ClaimTable table = inPartitions ? kept.partitionedBy(Buckets.daily()) : kept;
        table.create(pool).block(LIMIT);
        Retention.of(table, WEEK).run(pool).then().block(LIMIT);
        ConsumerBuilder<Order> described = orders(Order::apply)
                .claimTable(table)
                .fingerprintedBy(order -> String.valueOf(order.points()))
                .admissionTable(this.table);
        IdempotentConsumer<Order> consumer = (inPartitions
                        ? described.bucketedBy(this::timeOf)
                        : described.sentAt(this::timeOf).redeliveryWindow(WEEK))
                .build(pool);
        run(consumer, TestDelivery.order("old"));
        admit("old");
        assertThat(run(consumer, TestDelivery.order("old"))).isInstanceOf(Outcome.Applied.class);
        TestDelivery<Order> other = TestDelivery.of(new Order("old", "c", 500));

        assertThat(run(consumer, other)).isInstanceOf(Outcome.Conflict.class);
        assertThat(run(consumer, TestDelivery.order("old"))).isInstanceOf(Outcome.Duplicate.class);
        assertThat(other.isDeadLettered()).isTrue();
    }

    @Test
    void aConflictWithAClaimThatIsThereTakesTheAdmissionBack() {
        ClaimTable plain = ClaimTable.named("plain").withFingerprintColumn("fingerprint");
        database.run("DROP TABLE IF EXISTS plain");
        plain.create(pool).block(LIMIT);
        database.run("INSERT INTO plain VALUES ('loyalty', 'old', now(), 4711)");
        IdempotentConsumer<Order> consumer = consumer(false, orders(Order::apply))
                .claimTable(plain)
                .fingerprintedBy(order -> String.valueOf(order.points()))
                .build(pool);
        run(consumer, TestDelivery.order("old"));
        admit("old");

        assertThat(run(consumer, TestDelivery.order("old"))).isInstanceOf(Outcome.Conflict.class);
        database.run("DELETE FROM plain");
        assertThat(run(consumer, TestDelivery.order("old"))).isInstanceOf(Outcome.Failed.class);
        assertThat(used()).isZero();
        assertThat(database.texts("SELECT h FROM admitted_messages, unnest(history) AS h"))
                .last()
                .asString()
                .endsWith("taken back: other content has been applied under this id");
    }

    @Test
    void whatWasRefusedIsListedAndAnAdmissionCanBeTakenBack() {
        List<String> ids =
                IntStream.range(0, 2_500).mapToObj("old %05d"::formatted).toList();
        refuseAndAdmit(true, ids.get(0), ids.get(1));
        run(
                consumer(true, batches(256, Order::apply)).build(pool),
                ids.stream().skip(2).map(TestDelivery::order).toList());

        assertThat(admissions
                        .refused("loyalty")
                        .map(refused -> refused.key().id())
                        .collectList()
                        .block(LIMIT))
                .isEqualTo(ids.subList(2, ids.size()));
        assertThat(admissions.refused("loyalty").blockFirst(LIMIT))
                .satisfies(refused -> assertThat(refused.reason()).contains("claims are kept from"));
        IdempotentConsumer<Order> consumer =
                consumer(true, orders(Order::apply)).build(pool);
        assertThat(run(consumer, TestDelivery.order(ids.get(0)))).isInstanceOf(Outcome.Applied.class);
        assertThat(admissions
                        .forget(key(ids.get(0)), "ben", "credited to another customer")
                        .block(LIMIT))
                .isTrue();
        assertThat(admissions.forget(key(ids.get(0)), "ben", "again").block(LIMIT))
                .isFalse();
        assertThat(run(consumer, TestDelivery.order(ids.get(0)))).isInstanceOf(Outcome.Failed.class);
        admit(ids.get(0));
        assertThat(run(consumer, TestDelivery.order(ids.get(0)))).isInstanceOf(Outcome.Applied.class);
        assertThat(database.count("SELECT array_length(history, 1) FROM admitted_messages WHERE message_key = '"
                        + ids.get(0) + "'"))
                .isEqualTo(3);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aDeadLetterIsReplayedOnceItWasAdmitted(boolean inPartitions) {
        IdempotentConsumer<Order> consumer = consumer(inPartitions, orders(Order::apply))
                .deadLetterTable(DeadLetterTable.deadLetters())
                .build(pool);
        database.run("""
                INSERT INTO dead_letters (consumer, message_key, message_id, origin, kind, reason, attempts, failed_at,
                                          header_names, header_values, body)
                SELECT 'loyalty', 'old ' || n, 'old ' || n, 'queue', 'PERMANENT', 'too old', 1, now(), '{}', '{}',
                       convert_to('old ' || n, 'UTF8')
                FROM generate_series(1, 3) AS n""");
        DeadLetters letters = consumer.deadLetters(body -> Order.of(new String(body, UTF_8)));
        assertThat(letters.replay(letter -> true, 1_000).collectList().block(LIMIT))
                .isEmpty();
        admit("old 2");

        assertThat(letters.replay(letter -> true, 1_000)
                        .map(DeadLetter::messageKey)
                        .collectList()
                        .block(LIMIT))
                .containsExactly("old 2");
        assertThat(database.effectsOf("old 2")).isOne();
        assertThat(database.effects()).isOne();
        assertThat(database.count("SELECT count(*) FROM dead_letters")).isEqualTo(2);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aCallerWhoOwnsATransactionMayClaimWhatWasAdmitted(boolean inPartitions) {
        TransactionalOperator callers = TransactionalOperator.create(new R2dbcTransactionManager(pool));
        IdempotentConsumer<Order> consumer =
                consumer(inPartitions, orders(Order::apply)).build(pool);
        Mono<Boolean> claim = callers.transactional(consumer.claimInTransaction("old", now.minus(Duration.ofDays(9))));
        assertThatThrownBy(() -> claim.block(LIMIT)).isInstanceOf(PermanentFailure.class);
        refuseAndAdmit(inPartitions, "old");

        assertThat(claim.block(LIMIT)).isTrue();
        assertThat(claim.block(LIMIT)).isFalse();
    }

    @Test
    void aMessageIsAdmittedOnceAndItStaysAsItWas() {
        refuseAndAdmit(false, "old");

        assertThat(admissions.admit(key("old"), "ben", "again").block(LIMIT)).isFalse();
        assertThat(database.texts("SELECT h FROM admitted_messages, unnest(history) AS h"))
                .singleElement()
                .satisfies(line -> assertThat(line).endsWith(" admitted by anna: INC-7"));
        assertThatThrownBy(() -> admissions.admit(key("old"), " ", "why"))
                .hasMessageContaining("who must not be blank");
        assertThatThrownBy(() -> admissions.admit(key("old"), "anna", ""))
                .hasMessageContaining("why must not be blank");
        assertThatThrownBy(() -> admissions.admit(key("old"), "anna", "\0"))
                .hasMessageContaining("why must not contain NUL");
    }

    @Test
    void withoutItsTableAConsumerIsRefusedAndSoIsWhoAdmits() {
        database.run("DROP TABLE admitted_messages");

        assertThatThrownBy(() -> run(consumer(false, orders(Order::apply)).build(pool), TestDelivery.order("new")))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("CREATE TABLE IF NOT EXISTS \"admitted_messages\"");
        assertThatThrownBy(() -> admissions
                        .admit(MessageKey.of("loyalty", "old"), "anna", "why")
                        .block(LIMIT))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("CREATE TABLE IF NOT EXISTS \"admitted_messages\"");
    }

    @Test
    void aTableThatACrashEmptiesIsRefused() {
        database.run("ALTER TABLE admitted_messages SET UNLOGGED");

        assertThatThrownBy(() -> run(consumer(false, orders(Order::apply)).build(pool), TestDelivery.order("new")))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("is UNLOGGED");
    }

    @Test
    void itIsForConsumersThatTakeMessagesForTooOld() {
        assertThatThrownBy(() -> orders(Order::apply).admissionTable(table).build(pool))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("takes no message for too old");
        assertThatThrownBy(() -> orders(Order::apply)
                        .claims(Claims.moving(Claims.in(ClaimTable.processedMessages()), Claims.in(daily)))
                        .bucketedBy(this::timeOf)
                        .admissionTable(table)
                        .build(pool))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("while claims are moved");
    }
}
