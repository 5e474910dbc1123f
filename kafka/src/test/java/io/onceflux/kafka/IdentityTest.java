package io.onceflux.kafka;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.Database;
import io.onceflux.DeadLetter;
import io.onceflux.Delivery;
import io.onceflux.IdempotentConsumer;
import io.onceflux.Order;
import io.onceflux.Outcome;
import io.onceflux.postgres.DeadLetterTable;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import reactor.core.Disposable;

/** Ids and payloads as producers really send them: missing, null, twice, tombstones, bytes that do not decode. */
class IdentityTest {

    private final Database database = Database.create();
    private final Broker broker = Broker.create();

    @AfterEach
    void close() {
        database.assertNothingLeaked();
        broker.close();
        database.close();
    }

    private List<ConsumerRecord<byte[], byte[]>> handle(KafkaOptions options, int applied, int duplicates, int failed) {
        try (Running running = Running.start(options, database.pool(6), Order::apply)) {
            await().until(() -> running.outcomes.size() == applied + duplicates + failed);
            broker.awaitNoBacklog();
            assertThat(running.count(Outcome.Applied.class)).isEqualTo(applied);
            assertThat(running.count(Outcome.Duplicate.class)).isEqualTo(duplicates);
            assertThat(running.count(Outcome.Failed.class)).isEqualTo(failed);
            running.stop();
        }
        database.assertAppliedOnce(applied);
        return broker.deadLetters();
    }

    private ProducerRecord<byte[], byte[]> record(String value, byte[]... ids) {
        ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(broker.topic(), value.getBytes(UTF_8));
        for (byte[] id : ids) {
            record.headers().add(Broker.ID, id);
        }
        return record;
    }

    @Test
    void theIdHeaderMayBeMissingNullTwiceOrUnreadableAndOtherNullsAreNoMatter() {
        broker.create(1);
        ProducerRecord<byte[], byte[]> unrelatedNull = record("a", "a".getBytes(UTF_8));
        unrelatedNull.headers().add("unrelated", null);
        ProducerRecord<byte[], byte[]> withNullId = record("null");
        withNullId.headers().add(Broker.ID, null);
        broker.publishAll(List.of(
                unrelatedNull,
                record("missing"),
                withNullId,
                record("blank", "  ".getBytes(UTF_8)),
                record("unreadable", new byte[] {(byte) 0xff, (byte) 0xfe}),
                record("b", "first".getBytes(UTF_8), "last".getBytes(UTF_8)),
                record("b", "other".getBytes(UTF_8), "last".getBytes(UTF_8))));

        List<ConsumerRecord<byte[], byte[]>> letters = handle(broker.options().build(), 2, 1, 4);

        assertThat(database.texts("SELECT message_key FROM processed_messages"))
                .as("of two headers the last counts")
                .containsExactlyInAnyOrder("a", "last");
        assertThat(letters)
                .extracting(letter -> new String(letter.value(), UTF_8) + ": " + Broker.header(letter, "reason"))
                .containsExactlyInAnyOrder(
                        "missing: the message has no id",
                        "null: the message has no id",
                        "blank: the message id is blank",
                        "unreadable: the header message-id is not UTF-8, so it is no message id");
    }

    @Test
    void theKeyOfTheRecordMayBeTheId() {
        broker.create(2);
        broker.publishAll(List.of(
                new ProducerRecord<>(broker.topic(), "k-1".getBytes(UTF_8), "one".getBytes(UTF_8)),
                new ProducerRecord<>(broker.topic(), "k-1".getBytes(UTF_8), "one".getBytes(UTF_8)),
                new ProducerRecord<>(broker.topic(), "k-2".getBytes(UTF_8), "two".getBytes(UTF_8)),
                new ProducerRecord<>(broker.topic(), null, "none".getBytes(UTF_8)),
                new ProducerRecord<>(broker.topic(), new byte[] {(byte) 0xff}, "binary".getBytes(UTF_8))));
        List<ConsumerRecord<byte[], byte[]>> letters =
                handle(broker.options().messageIdFromRecordKey().build(), 2, 1, 2);
        assertThat(letters)
                .extracting(letter -> Broker.header(letter, "reason"))
                .containsExactlyInAnyOrder(
                        "the message has no id", "the key of the record is not UTF-8, so it is no message id");
    }

    @Test
    void thePositionIsAnIdThatARedeliveryKeepsAndACopyDoesNot() {
        broker.create(2);
        KafkaOptions options = broker.options().messageIdFromPosition().build();
        broker.publish("same", "same");
        try (Running running = Running.start(options, database.pool(6), Order::note)) {
            await().until(() -> running.count(Outcome.Applied.class) == 2);
            broker.awaitNoBacklog();
            running.stop();
        }
        assertThat(database.texts("SELECT message_key FROM processed_messages"))
                .as("topic id, partition, offset")
                .allMatch(key -> key.matches("[A-Za-z0-9_-]{22}:\\d:\\d"))
                .doesNotHaveDuplicates();

        broker.admin()
                .deleteConsumerGroups(List.of(broker.group()))
                .all()
                .toCompletionStage()
                .toCompletableFuture()
                .join();
        try (Running again = Running.start(options, database.pool(6), Order::note)) {
            await().until(() -> again.count(Outcome.Duplicate.class) == 2);
            again.stop();
        }
        assertThat(database.effects()).isEqualTo(2);
    }

    @Test
    void recordsWithoutKeyOrValueAreHandledOrDeadLetteredWithTheirNullsKept() {
        broker.create(1);
        broker.publishAll(List.of(
                broker.record("1", null, "x"),
                broker.record("2", "k", null),
                broker.record("3", null, null),
                broker.record("4", "bad", null),
                broker.record("5", "k", "after")));
        List<Outcome> outcomes = new CopyOnWriteArrayList<>();
        IdempotentConsumer<ConsumerRecord<byte[], byte[]>> consumer =
                IdempotentConsumer.<ConsumerRecord<byte[], byte[]>>named("loyalty")
                        .identifiedByMessageId()
                        .lanes(4)
                        .effect((record, db) -> {
                            if (record.key() != null && new String(record.key(), UTF_8).equals("bad")) {
                                throw new io.onceflux.PermanentFailure("fails on the tombstone");
                            }
                            return Order.of("offset-" + record.offset()).apply(db);
                        })
                        .build(database.pool(6));
        Disposable running = KafkaDeliveries.records(broker.options().build())
                .transform(consumer)
                .subscribe(outcomes::add);
        await().until(() -> outcomes.size() == 5);
        broker.awaitNoBacklog();
        consumer.stop().block();
        running.dispose();

        database.assertAppliedOnce(4);
        assertThat(broker.deadLetters()).singleElement().satisfies(letter -> {
            assertThat(letter.key()).isEqualTo("bad".getBytes(UTF_8));
            assertThat(letter.value()).isNull();
            assertThat(Broker.header(letter, "reason")).isEqualTo("fails on the tombstone");
        });
    }

    @Test
    void aTombstoneIsADeadLetterWhereOnlyValuesAreTaken() {
        broker.create(1);
        broker.publishAll(List.of(broker.record("1", "k", null), broker.record("2", "k", "order-2")));
        List<ConsumerRecord<byte[], byte[]>> letters = handle(broker.options().build(), 1, 0, 1);
        assertThat(letters).singleElement().satisfies(letter -> {
            assertThat(letter.value()).isNull();
            assertThat(Broker.header(letter, "reason")).contains("tombstone");
        });
    }

    @Test
    void aTombstoneIsKeptInADeadLetterTableToo() {
        broker.create(1);
        DeadLetterTable table = DeadLetterTable.deadLetters();
        database.run(table.createSql());
        try (Running running = Running.start(
                broker.options().build(),
                database.pool(6),
                Order::apply,
                consumer -> consumer.deadLetterTable(table))) {
            broker.publishAll(List.of(broker.record("1", "k", null), broker.record("2", "k", "order-2")));
            await().until(() -> running.outcomes.size() == 2);
            broker.awaitNoBacklog();

            List<DeadLetter> letters = running.consumer
                    .deadLetters(body -> Order.of(new String(body, UTF_8)))
                    .list()
                    .collectList()
                    .block();
            assertThat(letters).singleElement().satisfies(letter -> {
                assertThat(letter.messageKey()).isEqualTo("1");
                assertThat(letter.body()).isEmpty();
                assertThat(letter.headers()).containsKey(Delivery.NO_BODY);
                assertThat(letter.reason()).contains("tombstone");
            });
            assertThat(running.consumer
                            .deadLetters(body -> Order.of("not " + body.length))
                            .replay(letter -> true, 100)
                            .collectList()
                            .block())
                    .as("a decoder that takes an empty body is not asked")
                    .isEmpty();
            running.stop();
        }
        database.assertAppliedOnce(1);
    }

    @Test
    void bytesThatDoNotDecodeAsValueOrKeyAreDeadLettersUnchangedAndTheNextRecordIsHandled() {
        broker.create(1);
        byte[] raw = {(byte) 0xff, 0, (byte) 0xc3};
        ProducerRecord<byte[], byte[]> badValue = new ProducerRecord<>(broker.topic(), "k".getBytes(UTF_8), raw);
        ProducerRecord<byte[], byte[]> badKey = new ProducerRecord<>(broker.topic(), raw, "v".getBytes(UTF_8));
        broker.publishAll(List.of(badValue, badKey, broker.record("3", "k", "order-3")));
        List<Outcome> outcomes = new CopyOnWriteArrayList<>();
        IdempotentConsumer<Order> consumer = IdempotentConsumer.<Order>named("loyalty")
                .identifiedBy(Order::id)
                .lanes(2)
                .effect(Order::apply)
                .build(database.pool(4));
        Disposable running = KafkaDeliveries.records(broker.options().build())
                .map(Delivery.decoding(record -> {
                    strictly(record.key());
                    return Order.of(strictly(record.value()));
                }))
                .transform(consumer)
                .subscribe(outcomes::add);
        await().until(() -> outcomes.size() == 3);
        broker.awaitNoBacklog();
        consumer.stop().block();
        running.dispose();

        database.assertAppliedOnce(1);
        List<ConsumerRecord<byte[], byte[]>> letters = broker.deadLetters();
        assertThat(letters).hasSize(2);
        assertThat(letters.get(0).value()).isEqualTo(raw);
        assertThat(letters.get(0).key()).isEqualTo("k".getBytes(UTF_8));
        assertThat(letters.get(1).key()).isEqualTo(raw);
        assertThat(letters.get(1).value()).isEqualTo("v".getBytes(UTF_8));
        assertThat(letters)
                .allSatisfy(
                        letter -> assertThat(Broker.header(letter, "reason")).contains("could not be decoded"));
    }

    private static String strictly(byte[] bytes) throws Exception {
        return UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
    }
}
