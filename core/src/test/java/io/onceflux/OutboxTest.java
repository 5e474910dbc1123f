package io.onceflux;

import static io.onceflux.Consumers.batches;
import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.policy;
import static io.onceflux.Consumers.run;
import static io.onceflux.Consumers.setBased;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.onceflux.outbox.Outbox;
import io.onceflux.outbox.OutboxEntry;
import io.onceflux.postgres.OutboxTable;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.spi.Connection;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** What an effect appends is there if and only if the effect is, and has the same idempotency key on every attempt. */
class OutboxTest {

    private static final Duration LIMIT = Duration.ofSeconds(30);
    private static final OutboxTable TABLE = OutboxTable.outbox();

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(12);
    private final Outbox outbox = Outbox.in(TABLE);

    @BeforeEach
    void createTable() {
        TABLE.create(pool).block(LIMIT);
        TABLE.create(pool).block(LIMIT);
    }

    @AfterEach
    void dropTable() {
        database.run("DROP TABLE outbox");
    }

    private static OutboxEntry receipt(Order order) {
        return OutboxEntry.of("receipt", order.customer(), order.id().getBytes(UTF_8))
                .header("points", Long.toString(order.points()));
    }

    private Mono<Void> applyAndAppend(Order order, DatabaseClient db) {
        return order.apply(db).then(outbox.append(db, receipt(order)));
    }

    private List<String> keys() {
        return database.texts("SELECT idempotency_key FROM outbox ORDER BY number");
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 50})
    void anEntryIsThereForEachMessageThatWasApplied(int maxBatch) {
        IdempotentConsumer<Order> consumer =
                batches(maxBatch, this::applyAndAppend).build(pool);
        run(consumer, TestDelivery.orders("m", 20));
        run(consumer, TestDelivery.orders("m", 30));

        assertThat(database.rows(
                        "SELECT kind, message_key, convert_from(payload, 'UTF8') AS id, header_names[1] AS header,"
                                + " header_values[1] AS value FROM outbox WHERE message_key = 'c-m7'"))
                .containsExactly(Map.of(
                        "kind", "receipt", "message_key", "c-m7", "id", "m7", "header", "points", "value", "10"));
        assertThat(keys()).hasSize(30).doesNotHaveDuplicates();
        database.assertAppliedOnce(30);
    }

    @Test
    void whatIsRolledBackLeavesNoEntryAndTheNextAttemptHasTheSameKeys() {
        AtomicInteger attempts = new AtomicInteger();
        IdempotentConsumer<Order> consumer = orders((order, db) -> applyAndAppend(order, db)
                        .then(outbox.append(db, "mail", order.customer(), new byte[0], Map.of()))
                        .then(Mono.defer(() -> attempts.incrementAndGet() < 3
                                ? Mono.error(new IllegalStateException("not yet"))
                                : Mono.empty())))
                .failurePolicy(policy().maxAttempts(5).build())
                .build(pool);
        run(consumer, TestDelivery.order("1"));
        List<String> keys = keys();
        assertThat(keys).hasSize(2).doesNotHaveDuplicates();

        database.run("TRUNCATE outbox, processed_messages");
        attempts.set(0);
        run(consumer, TestDelivery.order("1"));
        assertThat(keys()).isEqualTo(keys);
    }

    @Test
    void anEntryThatIsThereIsNotAppendedAgain() {
        IdempotentConsumer<Order> consumer =
                orders(this::applyAndAppend).withoutClaims().build(pool);
        run(consumer, TestDelivery.order("1"));
        run(consumer, TestDelivery.order("1"));
        assertThat(database.effects()).isEqualTo(2);
        assertThat(keys()).hasSize(1);
    }

    /** Two events of one order, told apart by what they say: without claims an id may be in several messages. */
    @ParameterizedTest
    @ValueSource(ints = {1, 50})
    void withoutClaimsEachMessageOfAnIdHasItsOwnEntries(int maxBatch) {
        IdempotentConsumer<Order> consumer = batches(
                        maxBatch,
                        (order, db) -> outbox.append(
                                db,
                                OutboxEntry.of(
                                        "mail",
                                        order.customer(),
                                        Long.toString(order.points()).getBytes(UTF_8))))
                .withoutClaims()
                .build(pool);
        run(
                consumer,
                List.of(
                        TestDelivery.of(new Order("1", "c", 10)),
                        TestDelivery.of(new Order("1", "c", 20)),
                        TestDelivery.of(new Order("1", "c", 10))));
        assertThat(database.texts("SELECT convert_from(payload, 'UTF8') FROM outbox ORDER BY 1"))
                .containsExactly("10", "20");
    }

    @Test
    void anEffectOfSeveralMessagesSaysWhichOneAnEntryIsOf() {
        run(
                setBased(
                                50,
                                (orders, db) -> Order.applyAll(orders, db)
                                        .then(outbox.appendForEach(
                                                db, orders, order -> order.id().equals("m3") ? null : receipt(order)))
                                        .then(outbox.appendFor(
                                                db, orders.get(0), OutboxEntry.of("audit", "all", new byte[] {0, -1, 39
                                                }))))
                        .build(pool),
                TestDelivery.orders("m", 40));
        List<String> together = database.texts("SELECT idempotency_key FROM outbox WHERE kind = 'receipt' ORDER BY 1");
        assertThat(together).hasSize(39).doesNotHaveDuplicates();
        assertThat(database.texts("SELECT DISTINCT encode(payload, 'hex') FROM outbox WHERE kind = 'audit'"))
                .containsExactly("00ff27");

        database.empty();
        database.run("TRUNCATE outbox");
        run(batches(1, this::applyAndAppend).build(pool), TestDelivery.orders("m", 40));
        assertThat(Set.copyOf(keys())).as("however they were grouped").containsAll(together);
    }

    @Test
    void anEffectOfSeveralMessagesThatDoesNotSayWhichOneIsAnError() {
        TestDelivery<Order> one = TestDelivery.order("1");
        List<Outcome> alone = run(
                setBased(50, (orders, db) -> outbox.append(db, receipt(orders.get(0))))
                        .build(pool),
                List.of(one));
        assertThat(alone).singleElement().isInstanceOf(Outcome.Applied.class);

        Outcome outcome = run(
                setBased(50, (orders, db) -> outbox.appendFor(db, Order.of("9"), receipt(orders.get(0))))
                        .failurePolicy(policy().maxAttempts(1).build())
                        .build(pool),
                TestDelivery.order("2"));
        assertThat(Consumers.failureOf(outcome).reason()).contains("none of the messages of the effect");
    }

    /** What no rows mean is asked in place of the effect, and must not be taken for it. */
    @Test
    void whatIsAppendedWhereNothingHappensHasAKeyOfItsOwn() {
        IdempotentConsumer<Order> consumer = orders(this::applyAndAppend)
                .conditionalEffect(
                        (order, db) -> db.sql("INSERT INTO balances VALUES (:c, 1) ON CONFLICT DO NOTHING")
                                .bind("c", order.customer())
                                .fetch()
                                .rowsUpdated()
                                .flatMap(rows -> rows == 0
                                        ? Mono.just(rows)
                                        : outbox.append(db, receipt(order)).thenReturn(rows)),
                        (order, db) -> outbox.append(db, OutboxEntry.of("again", order.customer(), new byte[0]))
                                .thenReturn(NoRows.DUPLICATE))
                .build(pool);
        run(consumer, TestDelivery.order("1"));
        run(consumer, TestDelivery.order("1"));
        run(consumer, TestDelivery.order("1"));
        assertThat(database.texts("SELECT kind FROM outbox ORDER BY number")).containsExactly("receipt", "again");
    }

    @Test
    void anotherClientIsRefused() {
        assertThatThrownBy(() -> outbox.append(DatabaseClient.create(pool), receipt(Order.of("1")))
                        .block(LIMIT))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("use the one that the effect is called with");
    }

    @Test
    void whoOwnsTheTransactionGivesTheKey() {
        Flux.usingWhen(
                        database.direct().create(),
                        connection -> Mono.from(connection.beginTransaction())
                                .then(outbox.appendAs(connection, "my-key", receipt(Order.of("1"))))
                                .then(outbox.appendAs(connection, "my-key", receipt(Order.of("1"))))
                                .then(Mono.from(connection.commitTransaction())),
                        Connection::close)
                .then()
                .block(LIMIT);
        assertThat(keys()).containsExactly("my-key");
    }

    @ParameterizedTest
    @ValueSource(strings = {"", " ", "a\0b", "a\ud800b"})
    void whatCannotBeStoredIsRefused(String text) {
        assertThatThrownBy(() -> OutboxEntry.of(text, "key", new byte[0])).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> OutboxEntry.of("kind", text, new byte[0]))
                .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> OutboxEntry.of("kind", "key", new byte[0]).header(text, "value"))
                .isInstanceOf(IllegalArgumentException.class);
    }
}
