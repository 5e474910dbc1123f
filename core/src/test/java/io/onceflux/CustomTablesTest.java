package io.onceflux;

import static io.onceflux.Consumers.failureOf;
import static io.onceflux.Consumers.named;
import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.run;
import static io.onceflux.Consumers.start;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.onceflux.postgres.ClaimTable;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.spi.R2dbcNonTransientResourceException;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

class CustomTablesTest {

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(12);

    private void appliesOnceIn(ClaimTable table, String id) {
        IdempotentConsumer<Order> consumer =
                orders(Order::apply).claimTable(table).build(pool);
        assertThat(run(consumer, TestDelivery.order(id))).isInstanceOf(Outcome.Applied.class);
        assertThat(run(consumer, TestDelivery.order(id))).isInstanceOf(Outcome.Duplicate.class);
        assertThat(database.effectsOf(id)).isEqualTo(1);
    }

    @Test
    void namesWithQuotesUpperCaseAndSqlInThem() {
        database.run("CREATE SCHEMA \"My \"\"Schema\"\"\"");
        ClaimTable table = ClaimTable.named("Processed\"; DROP TABLE balances; --")
                .inSchema("My \"Schema\"")
                .withConsumerColumn("The Consumer")
                .withKeyColumn("key $1 :p ?")
                .withProcessedAtColumn("SELECT");
        table.create(pool).block();
        appliesOnceIn(table, "odd names");
        assertThat(database.count("SELECT count(*) FROM balances")).isPositive();
    }

    @Test
    void aTableWithoutATimeAndOneWhoseTimeHasNoDefault() {
        database.run("CREATE TABLE no_time (consumer text, message_key text, UNIQUE (message_key, consumer))");
        appliesOnceIn(ClaimTable.named("no_time").withoutProcessedAt(), "no time");

        database.run("CREATE TABLE own_time (consumer varchar(100), message_key varchar(255),"
                + " processed_at timestamp NOT NULL, UNIQUE (consumer, message_key))");
        appliesOnceIn(ClaimTable.named("own_time"), "own time");
        assertThat(database.count("SELECT count(*) FROM own_time WHERE processed_at > now() - interval '1 minute'"))
                .isEqualTo(1);
    }

    @Test
    void aUuidKeyColumnTakesUuidsOnly() {
        database.run("CREATE TABLE uuids (consumer text, message_key uuid, PRIMARY KEY (consumer, message_key))");
        ClaimTable table = ClaimTable.named("uuids").withoutProcessedAt();
        appliesOnceIn(table, "0191D2A8-0000-7000-8000-00000000ABCD");

        for (String almost : List.of("100000001-001-0001-0001-000000000001", "200000001-001-0001-0001-000000000001")) {
            Outcome outcome = run(orders(Order::apply).claimTable(table).build(pool), TestDelivery.order(almost));
            assertThat(failureOf(outcome).kind())
                    .as("cut to a UUID, these two are the same")
                    .isEqualTo(FailureKind.PERMANENT);
        }
        TestDelivery<Order> noUuid = TestDelivery.order("order-1");
        Failure failure = failureOf(run(orders(Order::apply).claimTable(table).build(pool), noUuid));
        assertThat(failure.kind()).isEqualTo(FailureKind.PERMANENT);
        assertThat(failure.reason())
                .isEqualTo("the message id is no UUID, but the claim table's key column is of type uuid");
        assertThat(noUuid.isDeadLettered()).isTrue();
    }

    @Test
    void anEffectThatChangesTheSearchPathDoesNotMoveTheClaims() {
        database.run("CREATE SCHEMA tenant");
        database.run("CREATE TABLE tenant.processed_messages (LIKE public.processed_messages INCLUDING ALL)");
        ConnectionPool single = database.pool(2);
        IdempotentConsumer<Order> consumer = orders((order, db) ->
                        db.sql("SET search_path TO tenant, public").then().then(order.note(db)))
                .lanes(1)
                .build(single);

        List<Outcome> outcomes = run(
                consumer,
                List.of(TestDelivery.order("moving"), TestDelivery.order("moving"), TestDelivery.order("moving")));

        assertThat(outcomes).filteredOn(Outcome.Applied.class::isInstance).hasSize(1);
        assertThat(database.effectsOf("moving")).isEqualTo(1);
        assertThat(database.count("SELECT count(*) FROM tenant.processed_messages"))
                .isZero();
    }

    @Test
    void aColumnThatIsTooShortForAnIdMakesItADeadLetterAndNotATruncatedKey() {
        database.run(
                "CREATE TABLE short (consumer text, message_key varchar(10), PRIMARY KEY (consumer, message_key))");
        RecordingListener listener = new RecordingListener();
        IdempotentConsumer<Order> consumer = orders(Order::apply)
                .claimTable(ClaimTable.named("short").withoutProcessedAt())
                .listener(listener)
                .build(pool);
        TestDelivery<Order> tooLong = TestDelivery.order("0123456789-a");

        Failure failure = failureOf(run(consumer, tooLong));
        assertThat(failure.kind()).isEqualTo(FailureKind.PERMANENT);
        assertThat(failure.reason())
                .isEqualTo(
                        "the message id has 12 characters, but column message_key of claim table public.short holds 10");
        assertThat(run(consumer, TestDelivery.order("0123456789"))).isInstanceOf(Outcome.Applied.class);
        assertThat(tooLong.isDeadLettered()).isTrue();
        assertThat(listener.warnings)
                .containsExactly(
                        "column message_key of table short holds 10 characters: messages with a longer id become dead letters.");
    }

    /** PostgreSQL cuts blanks that are too many for a varchar(n) without an error. */
    @Test
    void anIdThatDiffersFromAnotherByBlanksThatTheColumnDoesNotHoldIsADeadLetterAndNoDuplicate() {
        database.run(
                "CREATE TABLE blanks (consumer varchar(7), message_key varchar(5), PRIMARY KEY (consumer, message_key))");
        IdempotentConsumer<Order> consumer = orders(Order::apply)
                .claimTable(ClaimTable.named("blanks").withoutProcessedAt())
                .build(pool);
        TestDelivery<Order> longer = TestDelivery.order("vcabc ");

        assertThat(run(consumer, TestDelivery.order("vcabc"))).isInstanceOf(Outcome.Applied.class);
        assertThat(run(consumer, longer)).isInstanceOf(Outcome.Failed.class);
        assertThat(longer.isDeadLettered()).isTrue();
        assertThat(run(consumer, TestDelivery.order("abcd "))).isInstanceOf(Outcome.Applied.class);
        assertThat(run(consumer, TestDelivery.order("\uD83D\uDE00".repeat(5)))).isInstanceOf(Outcome.Applied.class);
        assertThat(database.texts("SELECT message_key FROM blanks"))
                .containsExactlyInAnyOrder("vcabc", "abcd ", "\uD83D\uDE00".repeat(5));
    }

    @Test
    void anIdThatIsTooLongIsFoundInItsBatchAndTheOthersCommit() {
        database.run(
                "CREATE TABLE short_batch (consumer text, message_key varchar(5), PRIMARY KEY (consumer, message_key))");
        IdempotentConsumer<Order> consumer = Consumers.batches(10, Order::apply)
                .claimTable(ClaimTable.named("short_batch").withoutProcessedAt())
                .build(pool);

        List<Outcome> outcomes = run(
                consumer,
                List.of(
                        TestDelivery.order("b1"),
                        TestDelivery.order("b2"),
                        TestDelivery.order("b2    "),
                        TestDelivery.order("b3")));
        assertThat(outcomes).filteredOn(Outcome.Applied.class::isInstance).hasSize(3);
        assertThat(outcomes).filteredOn(Outcome.Failed.class::isInstance).hasSize(1);
    }

    /** Every key of one hexadecimal digit is taken. */
    @Test
    void aColumnOfOneCharacterCanStillBeProbed() {
        database.run("""
                CREATE TABLE tiny (consumer text, message_key varchar(1), PRIMARY KEY (consumer, message_key));
                INSERT INTO tiny SELECT 'loyalty', to_hex(n) FROM generate_series(0, 15) AS n""");
        RecordingListener listener = new RecordingListener();
        IdempotentConsumer<Order> consumer = orders(
                        (order, db) -> Mono.<Void>error(new R2dbcNonTransientResourceException("odd", "53400")))
                .claimTable(ClaimTable.named("tiny").withoutProcessedAt())
                .failurePolicy(Consumers.policy().quarantineAfter(3).build())
                .listener(listener)
                .build(pool);

        assertThat(failureOf(run(consumer, TestDelivery.order("x"))).kind())
                .as("given up, because each probe was answered")
                .isEqualTo(FailureKind.INFRASTRUCTURE);
    }

    @Test
    void aTriggerThatTakesClaimsAwayIsFoundWithAShortColumnToo() {
        database.run("""
                CREATE TABLE away (consumer text, message_key varchar(12), PRIMARY KEY (consumer, message_key));
                CREATE FUNCTION takes_away() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
                CREATE TRIGGER away BEFORE INSERT ON away FOR EACH ROW EXECUTE FUNCTION takes_away()""");
        IdempotentConsumer<Order> consumer = orders(Order::apply)
                .claimTable(ClaimTable.named("away").withoutProcessedAt())
                .build(pool);

        assertThatThrownBy(() -> run(consumer, TestDelivery.order("1")))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("A trial claim in away was not stored");
    }

    @Test
    void aColumnThatIsTooShortForTheConsumersNameIsRefusedAtTheStart() {
        database.run(
                "CREATE TABLE narrow (consumer varchar(6), message_key text, PRIMARY KEY (consumer, message_key))");
        ClaimTable table = ClaimTable.named("narrow").withoutProcessedAt();
        for (String name : List.of("loyalty", "short  ")) {
            IdempotentConsumer<Order> consumer =
                    named(name, Order::apply).claimTable(table).build(pool);
            assertThatThrownBy(() -> run(consumer, TestDelivery.order("1")))
                    .isInstanceOf(InvalidSetupException.class)
                    .hasMessage(
                            "Column consumer of table public.narrow holds 6 characters, but the name of consumer '"
                                    + name
                                    + "' has 7. Make it longer: ALTER TABLE \"public\".\"narrow\" ALTER COLUMN \"consumer\" TYPE text;");
        }
        assertThat(run(named("points", Order::apply).claimTable(table).build(pool), TestDelivery.order("narrow")))
                .isInstanceOf(Outcome.Applied.class);
    }

    @Test
    void aOneColumnTableServesOneConsumerAndRefusesASecond() {
        database.run("CREATE TABLE one_column (message_id text PRIMARY KEY)");
        ClaimTable table = ClaimTable.named("one_column").withoutProcessedAt().withOneColumnKey("message_id");
        appliesOnceIn(table, "one column");

        ClaimTable sameByAnotherName = ClaimTable.named("one_column")
                .inSchema("public")
                .withoutProcessedAt()
                .withOneColumnKey("message_id");
        IdempotentConsumer<Order> second =
                named("billing", Order::apply).claimTable(sameByAnotherName).build(pool);
        assertThatThrownBy(() -> run(second, TestDelivery.order("2")))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessage(
                        "Table public.one_column has a one-column key and serves consumer 'loyalty' already; for 'billing'"
                                + " it would take the same message for a duplicate. Give 'billing' a table of its own, or add a column"
                                + " for the consumer.");
    }

    @Test
    void aPartitionThatIsMissingIsHeldAndNoDeadLetter() {
        database.run("""
                CREATE TABLE parted (consumer text, message_key text, PRIMARY KEY (consumer, message_key))
                    PARTITION BY LIST (consumer);
                CREATE TABLE parted_other PARTITION OF parted FOR VALUES IN ('other')""");
        RecordingListener listener = new RecordingListener();
        TestDelivery<Order> delivery = TestDelivery.order("parted");
        IdempotentConsumer<Order> consumer = orders(Order::apply)
                .claimTable(ClaimTable.named("parted").withoutProcessedAt())
                .listener(listener)
                .build(pool);
        var outcome = start(consumer, List.of(delivery));
        await().until(() -> listener.retries.size() > 12);
        assertThat(listener.held).containsExactly(FailureKind.BROKEN_SETUP);
        assertThat(delivery.settlements()).isEmpty();
        assertThat(consumer.health().toString())
                .contains("the claim table public.parted has no partition for the claim");

        database.run("CREATE TABLE parted_loyalty PARTITION OF parted FOR VALUES IN ('loyalty')");
        await().until(outcome::isDone);
        assertThat(outcome.join()).hasExactlyElementsOfTypes(Outcome.Applied.class);
        assertThat(database.effectsOf("parted")).isEqualTo(1);
    }

    @Test
    void creatingATableIsRepeatableAndMayBeDoneByEightAtOnce() {
        for (int round = 0; round < 5; round++) {
            ClaimTable table = ClaimTable.named("created_" + round);
            Flux.range(0, 8)
                    .flatMap(n -> table.create(pool).thenReturn(n), 8)
                    .then()
                    .block();
            table.create(pool).block();
            appliesOnceIn(table, "created " + round);
        }
    }
}
