package io.onceflux;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.onceflux.outbox.Outbox;
import io.onceflux.outbox.OutboxEntry;
import io.onceflux.outbox.Relay;
import io.onceflux.postgres.AdmissionTable;
import io.onceflux.postgres.ClaimTable;
import io.onceflux.postgres.OffsetTable;
import io.onceflux.postgres.OutboxTable;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.spi.R2dbcPermissionDeniedException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** The rights that docs/security.md says are enough for what works beside consumers, and that each of them is needed. */
class RightsBesideConsumersTest {

    private static final Duration LIMIT = Duration.ofSeconds(30);
    private static final MessageKey KEY = MessageKey.of("loyalty", "1");
    private static final MessageKey KEY_2 = MessageKey.of("loyalty", "2");

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final String role = "beside_" + ProcessHandle.current().pid() + "_" + System.nanoTime();
    private final OutboxTable table = OutboxTable.outbox();
    private final Outbox outbox = Outbox.in(table);
    private final List<String> arrived = new CopyOnWriteArrayList<>();

    @BeforeEach
    void createTablesAndARoleThatMayDoNothing() {
        database.run(table.createSql());
        database.run(OffsetTable.consumerOffsets().createSql());
        database.run(
                KeptClaims.in(ClaimTable.processedMessages(), database.direct()).createForgottenSql());
        database.run("""
                CREATE TABLE split (consumer text, message_key text, processed_at timestamptz NOT NULL,
                                    PRIMARY KEY (consumer, message_key)) PARTITION BY HASH (message_key);
                CREATE TABLE split_0 PARTITION OF split FOR VALUES WITH (MODULUS 2, REMAINDER 0);
                CREATE TABLE split_1 PARTITION OF split FOR VALUES WITH (MODULUS 2, REMAINDER 1);
                INSERT INTO split SELECT 'loyalty', n::text, now() - interval '8 days' FROM generate_series(1, 20) n;
                INSERT INTO processed_messages VALUES ('loyalty', '1', now() - interval '8 days');
                CREATE ROLE %1$s LOGIN PASSWORD 'secret';
                REVOKE ALL ON SCHEMA public FROM PUBLIC;
                GRANT USAGE ON SCHEMA public TO %1$s""".formatted(role));
    }

    @AfterEach
    void dropThem() {
        database.closePools();
        database.run("DROP OWNED BY %1$s; DROP ROLE %1$s".formatted(role));
        database.run("DROP TABLE split, outbox, consumer_offsets, processed_messages_forgotten");
    }

    private void grant(String rights, String on) {
        database.run("GRANT %s ON %s TO %s".formatted(rights, on, role));
    }

    private void revoke(String rights, String on) {
        database.run("REVOKE %s ON %s FROM %s".formatted(rights, on, role));
    }

    private ConnectionPool poolOfRole() {
        return database.pool(6, database.configuration().username(role).password("secret"));
    }

    private long removedFrom(String claims) {
        return Objects.requireNonNull(Retention.of(ClaimTable.named(claims), Duration.ofDays(7))
                .run(poolOfRole())
                .map(Retention.Progress::removed)
                .blockLast(LIMIT));
    }

    @Test
    void retentionMaySelectUpdateAndDeleteInTheTableOrItsPartitions() {
        grant("SELECT, UPDATE, DELETE", "processed_messages");
        assertThat(removedFrom("processed_messages")).isOne();
        grant("SELECT, UPDATE, DELETE", "split_0, split_1");
        assertThat(removedFrom("split")).isEqualTo(20);
    }

    @ParameterizedTest
    @CsvSource({
        "SELECT, processed_messages, processed_messages",
        "UPDATE, processed_messages, processed_messages",
        "DELETE, processed_messages, processed_messages",
        "SELECT, split, split_1",
        "UPDATE, split, split_1",
        "DELETE, split, split_1"
    })
    void withoutOneOfTheseRetentionRemovesNothingAndSaysWhere(String right, String claims, String of) {
        grant("SELECT, UPDATE, DELETE", "processed_messages, split, split_0, split_1");
        revoke(right, of);
        assertThatThrownBy(() -> removedFrom(claims))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining(role)
                .hasMessageContaining(of)
                .hasMessageContaining(right);
        assertThat(database.count("SELECT count(*) FROM " + claims)).isEqualTo(claims.equals("split") ? 20 : 1);
    }

    private void append(String... bodies) {
        Flux.usingWhen(
                        database.direct().create(),
                        connection -> Flux.fromArray(bodies)
                                .concatMap(body -> outbox.appendAs(
                                        connection, body, OutboxEntry.of("mail", "k", body.getBytes(UTF_8)))),
                        connection -> connection.close())
                .then()
                .block(LIMIT);
    }

    private Relay.Builder relay() {
        return Relay.of(outbox)
                .to("mail", message -> Mono.fromRunnable(() -> arrived.add(new String(message.payload(), UTF_8))))
                .pollInterval(Duration.ofMillis(50));
    }

    private void runUntilAllHaveArrived(Relay relay, String... bodies) {
        Disposable running = relay.run().subscribe();
        try {
            await().atMost(LIMIT).until(() -> database.count("SELECT count(*) FROM outbox WHERE sent_at IS NULL") == 0);
        } finally {
            relay.stop().block(LIMIT);
            await().until(running::isDisposed);
        }
        assertThat(arrived).containsExactly(bodies);
    }

    @Test
    void aRelayMaySelectUpdateAndDeleteOrKeepsWhatItHasSent() {
        append("1", "2");
        grant("SELECT, UPDATE", "outbox");
        runUntilAllHaveArrived(relay().keepSentForEver().build(poolOfRole()), "1", "2");

        grant("DELETE", "outbox");
        append("3");
        List<Throwable> errors = new CopyOnWriteArrayList<>();
        Relay removing =
                relay().keepSent(Duration.ofMillis(100)).onError(errors::add).build(poolOfRole());
        Disposable running = removing.run().subscribe();
        await().atMost(LIMIT).until(() -> database.count("SELECT count(*) FROM outbox") == 0);
        removing.stop().block(LIMIT);
        await().until(running::isDisposed);
        assertThat(arrived).containsExactly("1", "2", "3");
        assertThat(errors).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(strings = {"SELECT", "UPDATE", "DELETE"})
    void withoutOneOfTheseARelayDoesNotStartAndWhatIsThereWaits(String right) {
        append("1", "2");
        grant("SELECT, UPDATE, DELETE", "outbox");
        revoke(right, "outbox");
        assertThatThrownBy(() -> relay().build(poolOfRole()).run().blockLast(LIMIT))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessage(
                        "Role %1$s may not send what is in the outbox. Allow it: GRANT %2$s ON \"public\".\"outbox\" TO \"%1$s\";"
                                .formatted(role, right));
        assertThat(arrived).isEmpty();

        grant(right, "outbox");
        runUntilAllHaveArrived(relay().build(poolOfRole()), "1", "2");
    }

    @ParameterizedTest
    @ValueSource(strings = {"SELECT", "UPDATE"})
    void aRelayThatLosesARightTellsAndGoesOnWhenItIsBack(String right) {
        grant("SELECT, UPDATE, DELETE", "outbox");
        List<Throwable> errors = new CopyOnWriteArrayList<>();
        Relay relay = relay().onError(errors::add).build(poolOfRole());
        Disposable running = relay.run().subscribe();
        try {
            append("1");
            await().atMost(LIMIT).until(() -> arrived.size() == 1);
            revoke(right, "outbox");
            append("2");
            await().atMost(LIMIT).until(() -> errors.size() >= 2);
            assertThat(errors).allSatisfy(error -> {
                assertThat(SqlStates.stateOf(error)).isEqualTo("42501");
                assertThat(error).hasMessageContaining("outbox");
            });
            assertThat(running.isDisposed()).isFalse();
            grant(right, "outbox");
            await().atMost(LIMIT).until(() -> arrived.containsAll(List.of("1", "2")));
        } finally {
            relay.stop().block(LIMIT);
            await().until(running::isDisposed);
        }
        assertThat(database.count("SELECT count(*) FROM outbox WHERE sent_at IS NOT NULL"))
                .isEqualTo(2);
    }

    private KeptClaims claims() {
        return KeptClaims.in(ClaimTable.processedMessages(), poolOfRole());
    }

    @Test
    void whoLooksAtClaimsMaySelectAndWhoForgetsThemDeletesAndInsertsToo() {
        grant("SELECT", "processed_messages");
        KeptClaims claims = claims();
        assertThat(claims.find(ClaimQuery.all()).collectList().block(LIMIT)).hasSize(1);
        assertThat(claims.find(KEY).block(LIMIT)).isNotNull();
        assertThat(claims.oldest().block(LIMIT)).isNotNull();
        assertThat(claims.size().block(LIMIT)).isNotNull();

        grant("DELETE", "processed_messages");
        grant("INSERT", "processed_messages_forgotten");
        assertThat(claims.forget(KEY, "ops", "ticket 7").block(LIMIT)).isTrue();

        grant("SELECT", "processed_messages_forgotten");
        assertThat(claims.forgotten(Duration.ofMillis(20), error -> {}).blockFirst(LIMIT))
                .isEqualTo(KEY);
    }

    @ParameterizedTest
    @CsvSource({
        "SELECT, processed_messages, forget claims",
        "DELETE, processed_messages, forget claims",
        "INSERT, processed_messages_forgotten, write down what is forgotten"
    })
    void withoutOneOfTheseNothingIsForgottenAndItIsSaidWhatIsMissing(String right, String of, String work) {
        grant("SELECT, DELETE", "processed_messages");
        grant("INSERT", "processed_messages_forgotten");
        revoke(right, of);
        assertThatThrownBy(() -> claims().forget(KEY, "ops", "ticket 7").block(LIMIT))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessage("Role %1$s may not %2$s. Allow it: GRANT %3$s ON \"%4$s\" TO \"%1$s\";"
                        .formatted(role, work, right, of));
        assertThat(database.claims()).isOne();
        assertThat(database.count("SELECT count(*) FROM processed_messages_forgotten"))
                .isZero();
    }

    @Test
    void whoMayNotLookIsToldSo() {
        List<Throwable> errors = new CopyOnWriteArrayList<>();
        KeptClaims claims = claims();
        for (Mono<?> look : List.of(claims.find(ClaimQuery.all()).collectList(), claims.find(KEY), claims.oldest())) {
            assertThatThrownBy(() -> look.block(LIMIT))
                    .isInstanceOf(InvalidSetupException.class)
                    .hasMessageContaining("may not read claims. Allow it: GRANT SELECT ON \"processed_messages\"");
        }
        Disposable following =
                claims.forgotten(Duration.ofMillis(20), errors::add).subscribe();
        await().until(() -> errors.size() >= 2);
        following.dispose();
        assertThat(errors)
                .allSatisfy(error -> assertThat(error)
                        .isInstanceOf(InvalidSetupException.class)
                        .hasMessageContaining("GRANT SELECT ON \"processed_messages_forgotten\""));
    }

    /** PostgreSQL asks for CREATE before it looks whether the table is there. */
    @Test
    void theTableOfWhatWasForgottenIsForAMigrationToCreate() {
        assertThatThrownBy(() -> claims().createForgotten().block(LIMIT))
                .satisfies(error -> assertThat(SqlStates.stateOf(error)).isEqualTo("42501"));
    }

    @Test
    void whoForgetsOffsetsMaySelectAndDelete() {
        database.run("INSERT INTO consumer_offsets (consumer, topic, topic_id, partition, next_offset, moved_from)"
                + " VALUES ('loyalty', 'orders', 'id', 0, 7, 0)");
        ShortTransactions transactions = ShortTransactions.on(poolOfRole(), LIMIT);
        Mono<Long> forget = transactions.withoutTransaction(
                connection -> OffsetTable.consumerOffsets().forget(connection, "loyalty", "orders"));
        for (String right : List.of("SELECT", "DELETE")) {
            assertThatThrownBy(() -> forget.block(LIMIT))
                    .satisfies(error -> assertThat(SqlStates.stateOf(error)).isEqualTo("42501"));
            grant(right, "consumer_offsets");
        }
        assertThat(forget.block(LIMIT)).isOne();
    }

    /** A consumer uses what others admit. */
    @Test
    void aConsumerMayNoteWhatItRefusesAndUseWhatWasAdmittedAndAdmitNothing() {
        AdmissionTable admitted = AdmissionTable.admittedMessages();
        database.run("DROP TABLE IF EXISTS admitted_messages; " + admitted.createSql());
        database.run("GRANT SELECT, INSERT ON processed_messages TO %1$s; GRANT INSERT ON point_ledger TO %1$s"
                .formatted(role));
        IdempotentConsumer<Order> consumer = Consumers.orders((order, db) -> order.note(db))
                .sentAt(order -> Instant.EPOCH)
                .redeliveryWindow(Duration.ofDays(1))
                .admissionTable(admitted)
                .build(poolOfRole());
        Mono<Boolean> admit = Admissions.in(admitted, poolOfRole()).admit(KEY_2, "anna", "INC-7");
        assertThatThrownBy(() -> admit.block(LIMIT)).hasMessageContaining("GRANT SELECT, UPDATE ON");
        assertThatThrownBy(() -> Consumers.run(consumer, TestDelivery.order("2")))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("may not use what was admitted. Allow it: GRANT SELECT, INSERT, UPDATE ON");
        grant("SELECT, INSERT (consumer, message_key, reason), UPDATE (used_at, fingerprint)", "admitted_messages");
        assertThat(Consumers.run(consumer, TestDelivery.order("2"))).isInstanceOf(Outcome.Failed.class);
        assertThatThrownBy(() -> admit.block(LIMIT)).isInstanceOf(R2dbcPermissionDeniedException.class);
        assertThat(Admissions.in(admitted, database.direct())
                        .admit(KEY_2, "anna", "INC-7")
                        .block(LIMIT))
                .isTrue();
        assertThat(Consumers.run(consumer, TestDelivery.order("2"))).isInstanceOf(Outcome.Applied.class);
        database.run("REVOKE ALL ON admitted_messages FROM " + role);
        grant("SELECT, UPDATE", "admitted_messages");
        assertThat(admit.block(LIMIT)).isFalse();
        database.run("DROP TABLE admitted_messages");
    }
}
