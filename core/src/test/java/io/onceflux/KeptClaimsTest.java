package io.onceflux;

import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.run;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.onceflux.postgres.ClaimTable;
import io.r2dbc.pool.ConnectionPool;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import reactor.core.Disposable;
import reactor.test.StepVerifier;

/** What a person finds among the claims, and forgets. */
class KeptClaimsTest {

    private static final Duration LIMIT = Duration.ofSeconds(30);

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(12);
    private final KeptClaims claims = KeptClaims.in(ClaimTable.processedMessages(), pool);

    @BeforeEach
    void createTable() {
        claims.createForgotten().block(LIMIT);
        claims.createForgotten().block(LIMIT);
    }

    @AfterEach
    void dropTable() {
        database.run("DROP TABLE IF EXISTS processed_messages_forgotten");
    }

    private List<String> idsOf(ClaimQuery which) {
        return Objects.requireNonNull(
                claims.find(which).map(KeptClaim::id).collectList().block(LIMIT));
    }

    @Test
    void claimsAreFoundByConsumerPrefixAndTime() {
        database.run("INSERT INTO processed_messages VALUES ('loyalty', 'order-1', now() - interval '2 days'),"
                + " ('loyalty', 'order-2', now()), ('loyalty', 'order_1', now()), ('loyalty', 'refund-1', now()),"
                + " ('audit', 'order-1', now())");
        Instant yesterday = Instant.now().minus(Duration.ofDays(1));

        assertThat(idsOf(ClaimQuery.all())).containsExactly("order-1", "order-1", "order-2", "order_1", "refund-1");
        assertThat(idsOf(ClaimQuery.all().ofConsumer("loyalty").startingWith("order-")))
                .containsExactly("order-1", "order-2");
        assertThat(idsOf(ClaimQuery.all().startingWith("order_"))).containsExactly("order_1");
        assertThat(idsOf(ClaimQuery.all().startingWith("%"))).isEmpty();
        assertThat(idsOf(ClaimQuery.all().before(yesterday))).containsExactly("order-1");
        assertThat(idsOf(ClaimQuery.all().since(yesterday).ofConsumer("loyalty")))
                .containsExactly("order-2", "order_1", "refund-1");
    }

    @Test
    void manyAreReadInPagesWithoutAConnectionHeldBetween() {
        database.run("INSERT INTO processed_messages SELECT c, 'm' || lpad(n::text, 5, '0'), now()"
                + " FROM generate_series(1, 2500) n, unnest(ARRAY['audit', 'loyalty']) c");
        StepVerifier.create(claims.find(ClaimQuery.all()), 1)
                .assertNext(claim -> assertThat(claim.id()).isEqualTo("m00001"))
                .then(database::assertNoConnectionInUse)
                .thenRequest(4_999)
                .expectNextCount(4_999)
                .expectComplete()
                .verify(LIMIT);
    }

    @Test
    void aKeyIsSaidToBeClaimedSince() {
        Instant before = Instant.now().minusSeconds(60);
        run(orders(Order::apply).build(pool), TestDelivery.order("1"));

        KeptClaim claim = Objects.requireNonNull(
                claims.find(MessageKey.of("loyalty", "1")).block(LIMIT));
        assertThat(claim.consumer()).isEqualTo("loyalty");
        assertThat(claim.claimedAt()).isBetween(before, Instant.now().plusSeconds(60));
        assertThat(claims.find(MessageKey.of("audit", "1")).block(LIMIT)).isNull();
    }

    @Test
    void aClaimThatIsForgottenIsAppliedAgainAndItIsWrittenDownWhoHasAndWhy() {
        RecentKeys recent = RecentKeys.of(100, Duration.ofMinutes(10));
        IdempotentConsumer<Order> consumer =
                orders(Order::apply).recentKeys(recent).build(pool);
        run(consumer, TestDelivery.order("1"));
        MessageKey key = MessageKey.of("loyalty", "1");
        Disposable following =
                claims.forgotten(Duration.ofMillis(20), error -> {}).subscribe(recent::forget);
        try {
            assertThat(claims.forget(key, "ops", "ticket 7").block(LIMIT)).isTrue();
            assertThat(claims.forget(key, "ops", "ticket 7").block(LIMIT)).isFalse();

            await().until(() -> run(consumer, TestDelivery.order("1")) instanceof Outcome.Applied);
        } finally {
            following.dispose();
        }
        assertThat(database.effectsOf("1")).isEqualTo(2);
        List<Map<String, Object>> written = database.rows("SELECT * FROM processed_messages_forgotten");
        assertThat(written)
                .singleElement()
                .satisfies(row -> assertThat(row)
                        .containsEntry("forgotten_by", "ops")
                        .containsEntry("reason", "ticket 7")
                        .containsEntry("consumer", "loyalty")
                        .containsEntry("message_key", "1")
                        .hasEntrySatisfying("claimed_at", at -> assertThat(at).isNotNull()));
    }

    @Test
    void whatIsForgottenIsToldHoweverOftenTheDatabaseCouldNotBeAsked() {
        List<MessageKey> told = new CopyOnWriteArrayList<>();
        List<Throwable> errors = new CopyOnWriteArrayList<>();
        run(orders(Order::apply).build(pool), TestDelivery.order("1"));
        database.run("ALTER TABLE processed_messages_forgotten RENAME TO elsewhere");
        Disposable following =
                claims.forgotten(Duration.ofMillis(20), errors::add).subscribe(told::add);
        try {
            await().until(() -> errors.size() >= 2);
            database.run("ALTER TABLE elsewhere RENAME TO processed_messages_forgotten");
            assertThat(claims.forget(MessageKey.of("loyalty", "1"), "ops", "ticket 7")
                            .block(LIMIT))
                    .isTrue();
            await().until(() -> told.contains(MessageKey.of("loyalty", "1")));
        } finally {
            following.dispose();
        }
    }

    /** It is kept as its hash. */
    @Test
    void aLongKeyIsFoundAndForgottenByWhatTheProducerCallsItAndAsItIsKept() {
        IdempotentConsumer<Order> consumer = orders(Order::apply).build(pool);
        for (boolean asKept : new boolean[] {false, true}) {
            String id = "é".repeat(200) + asKept;
            assertThat(run(consumer, TestDelivery.order(id))).isInstanceOf(Outcome.Applied.class);
            KeptClaim kept = Objects.requireNonNull(
                    claims.find(MessageKey.of("loyalty", id)).block(LIMIT));
            assertThat(kept.id()).startsWith("sha256:");
            MessageKey key = asKept ? new MessageKey("loyalty", kept.id()) : MessageKey.of("loyalty", id);
            assertThat(claims.find(key).block(LIMIT)).isEqualTo(kept);
            assertThat(claims.forget(key, "ops", "ticket 7").block(LIMIT)).isTrue();
            assertThat(claims.find(key).block(LIMIT)).isNull();
            assertThat(run(consumer, TestDelivery.order(id))).isInstanceOf(Outcome.Applied.class);
        }
    }

    @Test
    void aKeyIsForgottenInWhateverCaseItsUuidWasWritten() {
        RecentKeys recent = RecentKeys.of(100, Duration.ofMinutes(10));
        String id = "0193A5F0-0000-7000-8000-00000000ABCD";
        Message<Order> message =
                new Message<>(TestDelivery.order(id), MessageKey.of("loyalty", id), null, 0, false, null, null, null);
        recent.remember(message);
        recent.forget(MessageKey.of("audit", id.toLowerCase(Locale.ROOT)));
        assertThat(recent.knows(message)).isTrue();
        recent.forget(MessageKey.of("loyalty", id.toLowerCase(Locale.ROOT)));
        assertThat(recent.knows(message)).isFalse();
    }

    @Test
    void whatTheTableCannotSayIsNotAskedOfIt() {
        database.run("CREATE TABLE inbox (\"id%s\" text COLLATE \"da-x-icu\" PRIMARY KEY)");
        try {
            KeptClaims inbox = KeptClaims.in(
                    ClaimTable.named("inbox").withOneColumnKey("id%s").withoutProcessedAt(), pool);
            database.run("INSERT INTO inbox VALUES ('aa-1'), ('ab-1'), ('b-1')"); // In Danish, aa comes last.
            assertThat(Objects.requireNonNull(inbox.find(ClaimQuery.all().startingWith("a"))
                            .map(KeptClaim::id)
                            .collectList()
                            .block(LIMIT)))
                    .containsExactlyInAnyOrder("aa-1", "ab-1");
            assertThatThrownBy(() ->
                            inbox.find(ClaimQuery.all().before(Instant.now())).blockLast(LIMIT))
                    .isInstanceOf(InvalidSetupException.class)
                    .hasMessageContaining("no column for the time of a claim");
            assertThatThrownBy(() ->
                            inbox.find(ClaimQuery.all().ofConsumer("loyalty")).blockLast(LIMIT))
                    .isInstanceOf(InvalidSetupException.class)
                    .hasMessageContaining("no column for the consumer");
        } finally {
            database.run("DROP TABLE inbox");
        }
        assertThatThrownBy(() ->
                        KeptClaims.in(ClaimTable.named("nowhere"), pool).size().block(LIMIT))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("nowhere");
    }

    @Test
    void nothingIsForgottenThatCannotBeWrittenDown() {
        run(orders(Order::apply).build(pool), TestDelivery.order("1"));
        database.run("DROP TABLE processed_messages_forgotten");

        assertThatThrownBy(() -> claims.forget(MessageKey.of("loyalty", "1"), "ops", "ticket 7")
                        .block(LIMIT))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("Create it: CREATE TABLE IF NOT EXISTS \"processed_messages_forgotten\"");
        assertThat(database.claims()).isEqualTo(1);
        assertThatThrownBy(() -> claims.forget(MessageKey.of("loyalty", "1"), " ", "ticket 7"))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("who must not be blank");
    }

    @Test
    void keysOfOneColumnAndOfTypeUuid() {
        database.run("CREATE TABLE uuids (message_id uuid PRIMARY KEY)");
        ClaimTable table =
                ClaimTable.named("uuids").withOneColumnKey("message_id").withoutProcessedAt();
        KeptClaims kept = KeptClaims.in(table, pool);
        String id = "0189c2d8-7b5b-7e3f-8a21-5e0c8f6b1d11";
        try {
            kept.createForgotten().block(LIMIT);
            database.run("INSERT INTO uuids VALUES ('" + id + "'), ('1189c2d8-7b5b-7e3f-8a21-5e0c8f6b1d11')");

            assertThat(kept.find(ClaimQuery.all().startingWith("0189"))
                            .collectList()
                            .block(LIMIT))
                    .containsExactly(new KeptClaim(null, id, null, null));
            assertThat(kept.forget(MessageKey.of("loyalty", id.toUpperCase(Locale.ROOT)), "ops", "why")
                            .block(LIMIT))
                    .isTrue();
            assertThat(kept.oldest().block(LIMIT)).isNull();
            assertThat(database.count("SELECT count(*) FROM uuids")).isEqualTo(1);
        } finally {
            database.run("DROP TABLE uuids; DROP TABLE IF EXISTS uuids_forgotten");
        }
    }

    @Test
    void theSizeAndTheOldestClaimAreTold() {
        assertThat(claims.oldest().block(LIMIT)).isNull();
        database.run("INSERT INTO processed_messages SELECT 'loyalty', n::text, now() - interval '3 days' * (n % 2)"
                + " FROM generate_series(1, 10000) n");
        database.run("ANALYZE processed_messages");

        assertThat(claims.size().block(LIMIT)).satisfies(size -> {
            assertThat(size.rows()).isEqualTo(10_000);
            assertThat(size.dataBytes()).isGreaterThan(100_000);
            assertThat(size.indexBytes()).isGreaterThan(100_000);
        });
        assertThat(claims.oldest().block(LIMIT))
                .isBetween(
                        Instant.now().minus(Duration.ofDays(3)).minusSeconds(60),
                        Instant.now().minus(Duration.ofDays(3)).plusSeconds(60));
    }

    @Test
    void aTableThatIsNotThereIsSaidToBe() {
        KeptClaims none = KeptClaims.in(ClaimTable.named("nowhere"), pool);
        assertThatThrownBy(() -> none.find(ClaimQuery.all()).then().block(LIMIT))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("nowhere");
    }
}
