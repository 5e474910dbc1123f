package io.onceflux;

import static io.onceflux.Consumers.policy;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.assertj.core.api.Assertions.tuple;
import static org.awaitility.Awaitility.await;

import io.onceflux.postgres.DeadLetterRow;
import io.onceflux.postgres.DeadLetterTable;
import io.r2dbc.pool.ConnectionPool;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.test.StepVerifier;

/** Dead letters in a table: stored before the source forgets the message, looked at, and handled again. */
class DeadLetterTableTest {

    private static final Duration LIMIT = Duration.ofSeconds(8);
    private static final Decoder<byte[], Order> DECODER = body -> decode(body);

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(10);
    private final DeadLetterTable table = DeadLetterTable.deadLetters();
    private final Set<String> refused = ConcurrentHashMap.newKeySet();
    private final RecordingListener listener = new RecordingListener();

    @BeforeEach
    void createTable() {
        table.create(pool).then(table.create(pool)).block(LIMIT);
        database.run("TRUNCATE dead_letters");
    }

    private static Order decode(byte[] body) {
        String text = new String(body, UTF_8);
        if (text.startsWith("{")) {
            throw new IllegalArgumentException("not an order: " + text);
        }
        return Order.of(text);
    }

    private IdempotentConsumer<Order> consumer(UnaryOperator<ConsumerBuilder<Order>> settings) {
        return settings.apply(Consumers.orders((order, db) -> refused.contains(order.id())
                                ? Mono.error(new PermanentFailure("no customer for " + order.id()))
                                : order.apply(db))
                        .failurePolicy(policy().build())
                        .listener(listener)
                        .deadLetterTable(table))
                .build(pool);
    }

    private IdempotentConsumer<Order> consumer() {
        return consumer(builder -> builder);
    }

    private List<BodyDelivery> handle(IdempotentConsumer<Order> consumer, String... bodies) {
        List<BodyDelivery> deliveries = new ArrayList<>();
        for (String body : bodies) {
            deliveries.add(new BodyDelivery(body, body));
        }
        handle(consumer, deliveries);
        return deliveries;
    }

    private static void handle(IdempotentConsumer<Order> consumer, List<BodyDelivery> deliveries) {
        Flux.<Delivery<byte[]>>fromIterable(deliveries)
                .map(Delivery.decoding(DECODER))
                .transform(consumer)
                .then()
                .block(LIMIT);
    }

    private static List<DeadLetter> list(IdempotentConsumer<Order> consumer) {
        return Objects.requireNonNull(
                consumer.deadLetters(DECODER).list().collectList().block(LIMIT));
    }

    @Test
    void aMessageThatIsGivenUpIsInTheTableWithItsBodyAndWhyAndItsSourceForgetsIt() {
        refused.add("2");
        IdempotentConsumer<Order> consumer = consumer();
        List<BodyDelivery> deliveries = handle(consumer, "1", "2", "{junk\u0001", "3");

        assertThat(deliveries)
                .allSatisfy(delivery -> assertThat(delivery.settlements).containsExactly(Settlement.acknowledge()));
        assertThat(list(consumer))
                .extracting(DeadLetter::reason, DeadLetter::kind, DeadLetter::messageKey, DeadLetter::consumer)
                .containsExactlyInAnyOrder(
                        tuple("no customer for 2", FailureKind.PERMANENT, "2", "loyalty"),
                        tuple(
                                "the payload could not be decoded: java.lang.IllegalArgumentException: not an order: {junk\u0001",
                                FailureKind.PERMANENT,
                                "{junk\u0001",
                                "loyalty"));
        assertThat(list(consumer))
                .extracting(letter -> new String(letter.body(), UTF_8))
                .containsExactlyInAnyOrder("2", "{junk\u0001");
        assertThat(list(consumer))
                .allSatisfy(letter -> assertThat(letter.headers()).containsExactly(Map.entry("sent-by", "shop")));
        database.assertAppliedOnce(2);
    }

    @Test
    void aReplayedMessageIsAppliedOnceAndLeavesTheTable() {
        refused.addAll(Set.of("1", "2", "3"));
        IdempotentConsumer<Order> consumer = consumer();
        handle(consumer, "1", "2", "3");
        refused.removeAll(Set.of("1", "2"));

        StepVerifier.create(consumer.deadLetters(DECODER)
                        .replay(letter -> "1".equals(letter.messageKey()), 100)
                        .map(DeadLetter::messageKey))
                .expectNext("1")
                .expectComplete()
                .verify(LIMIT);
        database.assertAppliedOnce(1);

        StepVerifier.create(consumer.deadLetters(DECODER)
                        .replay(letter -> true, 100)
                        .map(DeadLetter::messageKey))
                .expectNext("2")
                .expectComplete()
                .verify(LIMIT);
        database.assertAppliedOnce(2);
        assertThat(list(consumer)).extracting(DeadLetter::messageKey).containsExactly("3");
        assertThat(database.count("SELECT times FROM dead_letters")).isEqualTo(2);
    }

    @Test
    void aDeadLetterWhoseMessageWasAppliedMeanwhileIsADuplicateAndLeavesTheTable() {
        refused.add("1");
        IdempotentConsumer<Order> consumer = consumer();
        handle(consumer, "1");
        refused.clear();
        handle(consumer, "1");

        assertThat(consumer.deadLetters(DECODER)
                        .replay(letter -> true, 100)
                        .collectList()
                        .block(LIMIT))
                .hasSize(1);
        assertThat(listener.count(Outcome.Duplicate.class)).isOne();
        assertThat(list(consumer)).isEmpty();
        database.assertAppliedOnce(1);
    }

    @Test
    void aMessageThatFailsAgainStaysOneDeadLetterWithAKeyOrWithoutAndTheReplayEnds() {
        IdempotentConsumer<Order> consumer = consumer();
        handle(consumer, List.of(new BodyDelivery(null, "{1"), new BodyDelivery("2", "{2")));

        assertThat(consumer.deadLetters(DECODER)
                        .replay(letter -> true, 1_000)
                        .collectList()
                        .block(LIMIT))
                .isEmpty();
        assertThat(list(consumer))
                .extracting(letter -> new String(letter.body(), UTF_8))
                .containsExactlyInAnyOrder("{1", "{2");
    }

    @Test
    void messagesWithOneKeyAndDifferentBodiesAreDeadLettersOfTheirOwnAndACopyIsNot() {
        IdempotentConsumer<Order> consumer = consumer();
        handle(
                consumer,
                List.of(new BodyDelivery("1", "{a"), new BodyDelivery("1", "{b"), new BodyDelivery("1", "{a")));

        assertThat(database.texts(
                        "SELECT message_key || ' ' || times || ' ' || convert_from(body, 'UTF8') FROM dead_letters"))
                .containsExactlyInAnyOrder("1 2 {a", "1 1 {b");
    }

    @Test
    void theSecondLetterOfAKeyIsADuplicateOfTheFirstWhenBothAreReplayedAndBothLeaveTheTable() {
        refused.addAll(Set.of("1", "2"));
        IdempotentConsumer<Order> consumer = consumer();
        handle(consumer, List.of(new BodyDelivery("1", "1"), new BodyDelivery("1", "2")));
        refused.clear();

        assertThat(consumer.deadLetters(DECODER)
                        .replay(letter -> true, 100)
                        .map(letter -> new String(letter.body(), UTF_8))
                        .collectList()
                        .block(LIMIT))
                .containsExactly("1", "2");
        assertThat(listener.count(Outcome.Duplicate.class)).isOne();
        assertThat(list(consumer)).isEmpty();
        database.assertAppliedOnce(1);
    }

    @Test
    void moreDeadLettersThanAPageAreListedAndReplayedInTheirOrder() {
        String[] ids = IntStream.range(0, 250).mapToObj(n -> "order-" + n).toArray(String[]::new);
        refused.addAll(List.of(ids));
        IdempotentConsumer<Order> consumer = consumer(builder ->
                builder.lanes(1).failurePolicy(policy().alarmAfter(1_000).build()));
        handle(consumer, ids);
        refused.clear();

        assertThat(list(consumer)).extracting(DeadLetter::messageKey).containsExactly(ids);
        assertThat(consumer.deadLetters(DECODER)
                        .replay(letter -> true, 1_000)
                        .map(DeadLetter::messageKey)
                        .collectList()
                        .block(LIMIT))
                .containsExactly(ids);
        assertThat(list(consumer)).isEmpty();
        database.assertAppliedOnce(250);
    }

    @Test
    void aReplayKeepsToItsRate() {
        refused.addAll(Set.of("1", "2", "3", "4", "5"));
        IdempotentConsumer<Order> consumer = consumer();
        handle(consumer, "1", "2", "3", "4", "5");
        refused.clear();

        Duration took = Objects.requireNonNull(consumer.deadLetters(DECODER)
                .replay(letter -> true, 10)
                .elapsed()
                .map(each -> Duration.ofMillis(each.getT1()))
                .reduce(Duration::plus)
                .block(LIMIT));
        assertThat(took).isGreaterThanOrEqualTo(Duration.ofMillis(450));
    }

    @Test
    void nothingIsAcknowledgedBeforeTheDeadLetterIsStored() {
        refused.add("1");
        IdempotentConsumer<Order> consumer = consumer();
        handle(consumer, "0");
        database.run("ALTER TABLE dead_letters RENAME TO elsewhere");
        BodyDelivery delivery = new BodyDelivery("1", "1");
        var handled = Flux.<Delivery<byte[]>>just(delivery)
                .map(Delivery.decoding(DECODER))
                .transform(consumer)
                .collectList()
                .toFuture();

        await().until(() -> listener.settleFailures.size() > 2);
        assertThat(delivery.settlements).isEmpty();
        assertThat(consumer.health().troubles())
                .extracting(Health.Trouble::what)
                .containsExactly("dead letters");
        database.run("ALTER TABLE elsewhere RENAME TO dead_letters");

        assertThat(handled).succeedsWithin(LIMIT);
        assertThat(delivery.settlements).containsExactly(Settlement.acknowledge());
        assertThat(list(consumer)).hasSize(1);
        assertThat(consumer.health().status()).isEqualTo(Health.Status.UP);
    }

    @Test
    void whatNoTextOfPostgresHoldsIsReplacedOrLeftOutAndTheBodyIsNot() {
        IdempotentConsumer<Order> consumer = consumer();
        handle(consumer, List.of(new BodyDelivery("1", "{\0}"), new BodyDelivery("a\0b", "2")));

        assertThat(list(consumer))
                .extracting(DeadLetter::messageKey, letter -> new String(letter.body(), UTF_8), DeadLetter::reason)
                .containsExactlyInAnyOrder(
                        tuple(
                                "1",
                                "{\0}",
                                "the payload could not be decoded: java.lang.IllegalArgumentException: not an order: {\uFFFD}"),
                        tuple(null, "2", "the message id has a NUL character at index 1"));
    }

    @Test
    void aSourceThatHasNoBytesKeepsItsDeadLettersItself() {
        refused.add("1");
        TestDelivery<Order> delivery = TestDelivery.order("1");
        IdempotentConsumer<Order> consumer = consumer();
        Consumers.run(consumer, delivery);

        assertThat(delivery.isDeadLettered()).isTrue();
        assertThat(list(consumer)).isEmpty();
    }

    @Test
    void eachConsumerSeesItsOwn() {
        refused.add("1");
        handle(consumer(), "1");
        IdempotentConsumer<Order> other = Consumers.named("other", (order, db) -> order.note(db))
                .deadLetterTable(table)
                .build(pool);

        assertThat(list(other)).isEmpty();
    }

    @Test
    void aTableThatIsMissingOrOtherwiseIsRefusedAtTheStartWithTheSqlThatMakesIt() {
        database.run("CREATE TABLE otherwise (consumer text)");
        for (String name : List.of("nowhere", "otherwise")) {
            IdempotentConsumer<Order> consumer =
                    consumer(builder -> builder.deadLetterTable(DeadLetterTable.named(name)));
            assertThat(catchThrowable(() -> handle(consumer, "1")))
                    .isInstanceOf(InvalidSetupException.class)
                    .hasMessageContaining("Table " + name + " cannot keep dead letters (42")
                    .hasMessageContaining("CREATE TABLE IF NOT EXISTS \"" + name + "\" (");
        }
        database.assertAppliedOnce(0);
    }

    @Test
    void anUnloggedTableIsRefusedAtTheStart() {
        DeadLetterTable unlogged = DeadLetterTable.named("Not logged");
        unlogged.create(pool).block(LIMIT);
        database.run("ALTER TABLE \"Not logged\" SET UNLOGGED");
        IdempotentConsumer<Order> consumer = consumer(builder -> builder.deadLetterTable(unlogged));

        assertThat(catchThrowable(() -> handle(consumer, "1")))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessage(
                        "Table Not logged is UNLOGGED: a crash of PostgreSQL empties it, and the messages in it have left their"
                                + " source. Make it permanent: ALTER TABLE \"Not logged\" SET LOGGED;");
        database.run("ALTER TABLE \"Not logged\" SET LOGGED");
        handle(consumer, "1");
        database.assertAppliedOnce(1);
    }

    @Test
    void aTableWithAnUnloggedPartitionIsRefusedAtTheStart() {
        database.run("""
                CREATE TABLE parted (LIKE dead_letters INCLUDING ALL EXCLUDING INDEXES) PARTITION BY LIST (consumer);
                CREATE UNLOGGED TABLE parted_loyalty PARTITION OF parted FOR VALUES IN ('loyalty')""");
        IdempotentConsumer<Order> consumer =
                consumer(builder -> builder.deadLetterTable(DeadLetterTable.named("parted")));

        assertThat(catchThrowable(() -> handle(consumer, "1")))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageStartingWith("Table parted is UNLOGGED")
                .hasMessageEndingWith("ALTER TABLE parted_loyalty SET LOGGED;");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "ALTER TABLE %s ALTER COLUMN reason TYPE varchar(5)",
                "ALTER TABLE %s ALTER COLUMN message_key TYPE varchar(100)",
                "ALTER TABLE %s ALTER COLUMN attempts TYPE smallint",
                "ALTER TABLE %s ADD COLUMN extra int NOT NULL",
                "ALTER TABLE %s ALTER COLUMN number DROP IDENTITY",
                "ALTER TABLE %s ADD CHECK (attempts < 100)",
                "DROP INDEX %s_letter_key; ALTER TABLE %<s ALTER COLUMN body TYPE text USING ''",
                "CREATE RULE nothing AS ON INSERT TO %s DO INSTEAD NOTHING",
                "CREATE TRIGGER away BEFORE INSERT ON %s FOR EACH ROW EXECUTE FUNCTION takes_away()",
                "CREATE TRIGGER away BEFORE UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION takes_away()",
                "CREATE TRIGGER away BEFORE DELETE ON %s FOR EACH ROW EXECUTE FUNCTION takes_away()",
            })
    void aTableThatCouldNotKeepALetterOfFullSizeIsRefusedAtTheStartByNameWithTheSqlThatMakesIt(String change) {
        database.run("CREATE OR REPLACE FUNCTION takes_away() RETURNS trigger LANGUAGE plpgsql AS"
                + " $$ BEGIN RETURN NULL; END $$");
        DeadLetterTable unfit = DeadLetterTable.named("unfit");
        database.run("DROP TABLE IF EXISTS unfit");
        unfit.create(pool).block(LIMIT);
        database.run(change.formatted("unfit"));
        IdempotentConsumer<Order> consumer = consumer(builder -> builder.deadLetterTable(unfit));

        assertThat(catchThrowable(() -> handle(consumer, "1")))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("Table unfit cannot keep dead letters (")
                .hasMessageContaining("CREATE TABLE IF NOT EXISTS \"unfit\" (")
                .hasMessageNotContaining("out of bounds");
        database.assertAppliedOnce(0);
    }

    @Test
    void aTableWithoutTheUniqueIndexIsRefusedAtTheStartWithTheSqlThatMakesIt() {
        DeadLetterTable unfit = DeadLetterTable.named("no_index");
        unfit.create(pool).block(LIMIT);
        database.run("DROP INDEX no_index_letter_key");
        IdempotentConsumer<Order> consumer = consumer(builder -> builder.deadLetterTable(unfit));

        assertThat(catchThrowable(() -> handle(consumer, "1")))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessage(
                        "Table no_index has no unique index on exactly (consumer, message_key, sha256(body)), so a dead letter"
                                + " that comes again could not be told from another. Add one: CREATE UNIQUE INDEX IF NOT EXISTS"
                                + " \"no_index_letter_key\" ON \"no_index\" (\"consumer\", \"message_key\", sha256(\"body\"));");
        unfit.create(pool).block(LIMIT);
        handle(consumer, "1");
        database.assertAppliedOnce(1);
    }

    @Test
    void aTableThatTakesOneLetterAKeyIsRefusedAtTheStartWithTheConstraintToDrop() {
        DeadLetterTable unfit = DeadLetterTable.named("one_a_key");
        unfit.create(pool).block(LIMIT);
        database.run("ALTER TABLE one_a_key ADD UNIQUE (consumer, message_key)");
        IdempotentConsumer<Order> consumer = consumer(builder -> builder.deadLetterTable(unfit));

        assertThat(catchThrowable(() -> handle(consumer, "1")))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageStartingWith(
                        "Table one_a_key cannot keep two dead letters that have one key and different bodies")
                .hasMessageEndingWith("Drop it: one_a_key_consumer_message_key_key");
        database.assertAppliedOnce(0);
    }

    @ParameterizedTest
    @ValueSource(strings = {"Dead \"letters\"; --", "é23456789012345678901234567890123456789012345678901234567890é"})
    void theTableMayHaveAnyNameAndItsIndexIsInItsSchemaWhenBothAreMadeAgain(String name) {
        database.run("CREATE SCHEMA IF NOT EXISTS \"Other\"");
        DeadLetterTable elsewhere = DeadLetterTable.named(name).inSchema("Other");
        elsewhere.create(pool).then(elsewhere.create(pool)).block(LIMIT);
        DeadLetterTable alike = DeadLetterTable.named(name.substring(0, name.length() - 1) + "x")
                .inSchema("Other");
        alike.create(pool).block(LIMIT);

        for (DeadLetterTable each : List.of(elsewhere, alike)) {
            database.empty();
            handle(consumer(builder -> builder.deadLetterTable(each)), "1", "{2");
            database.assertAppliedOnce(1);
        }
    }

    @Test
    void aLetterThatATriggerTakesAwayLaterIsNotTakenForStored() {
        refused.add("1");
        IdempotentConsumer<Order> consumer = consumer();
        handle(consumer, "0");
        database.run("""
                CREATE OR REPLACE FUNCTION takes_away() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN RETURN NULL; END $$;
                CREATE TRIGGER away BEFORE INSERT ON dead_letters FOR EACH ROW EXECUTE FUNCTION takes_away()""");
        BodyDelivery delivery = new BodyDelivery("1", "1");
        var handled = Flux.<Delivery<byte[]>>just(delivery)
                .map(Delivery.decoding(DECODER))
                .transform(consumer)
                .collectList()
                .toFuture();

        await().until(() -> !listener.settleFailures.isEmpty());
        assertThat(delivery.settlements).isEmpty();
        assertThat(listener.settleFailures.get(0)).hasMessageContaining("dead_letters has not stored a dead letter");
        database.run("DROP TRIGGER away ON dead_letters");
        assertThat(handled).succeedsWithin(LIMIT);
        assertThat(list(consumer)).hasSize(1);
    }

    @Test
    void whatADeliveryDoesNotTellOfItselfIsReplacedByANoteAndItsLetterIsStored() {
        refused.addAll(Set.of("1", "2", "3", "4"));
        Map<String, String> halfNull = new HashMap<>();
        halfNull.put("a", null);
        BodyDelivery nullHeader = new BodyDelivery("1", "1") {
            @Override
            public Map<String, String> headers() {
                return halfNull;
            }
        };
        BodyDelivery throwingHeaders = new BodyDelivery("2", "2") {
            @Override
            public Map<String, String> headers() {
                throw new IllegalStateException("no headers");
            }
        };
        BodyDelivery throwingOrigin = new BodyDelivery("3", "3") {
            @Override
            public String origin() {
                throw new StackOverflowError("no origin");
            }
        };
        BodyDelivery throwingBody = new BodyDelivery("4", "4") {
            @Override
            public byte[] body() {
                throw new IllegalStateException("no body");
            }
        };
        IdempotentConsumer<Order> consumer = consumer();
        handle(consumer, List.of(nullHeader, throwingHeaders, throwingOrigin, throwingBody));

        assertThat(list(consumer))
                .extracting(DeadLetter::messageKey, letter -> letter.headers().toString())
                .containsExactlyInAnyOrder(
                        tuple("1", "{a=null}"),
                        tuple(
                                "2",
                                "{onceflux-note=the headers could not be told: java.lang.IllegalStateException: no headers}"),
                        tuple("3", "{sent-by=shop}"));
        assertThat(database.texts("SELECT origin FROM dead_letters WHERE message_key = '3'"))
                .containsExactly("the origin could not be told: java.lang.StackOverflowError: no origin");
        assertThat(throwingBody.settlements).singleElement().isInstanceOf(Settlement.DeadLetter.class);
    }

    @Test
    void aRowSaysNothingOfWhatMayBePrivate() {
        DeadLetterRow row = new DeadLetterRow(
                1,
                1,
                "loyalty",
                "key",
                "key",
                "queue",
                "EFFECT",
                "secret reason",
                null,
                1,
                Instant.EPOCH,
                Map.of("secret", "secret"),
                "secret".getBytes(UTF_8));
        assertThat(row.toString()).contains("loyalty", "body of 6 bytes").doesNotContain("secret");
    }

    @Test
    void aConsumerWithoutSuchATableSaysSo() {
        IdempotentConsumer<Order> consumer = Consumers.loyalty(pool);
        assertThatIllegalStateException()
                .isThrownBy(() -> consumer.deadLetters(DECODER))
                .withMessageContaining("deadLetterTable");
    }

    /** A message with bytes, as a broker delivers it. */
    private static class BodyDelivery implements Delivery<byte[]> {

        final List<Settlement> settlements = new CopyOnWriteArrayList<>();
        private final @Nullable String id;
        private final String body;

        BodyDelivery(@Nullable String id, String body) {
            this.id = id;
            this.body = body;
        }

        @Override
        public byte[] payload() {
            return body.getBytes(UTF_8);
        }

        @Override
        public @Nullable String id() {
            return id;
        }

        @Override
        public byte[] body() {
            return payload();
        }

        @Override
        public Map<String, String> headers() {
            return Map.of("sent-by", "shop");
        }

        @Override
        public Mono<Void> settle(Settlement settlement) {
            return Mono.fromRunnable(() -> settlements.add(settlement));
        }
    }
}
