package io.onceflux.kafka;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.ConsumerBuilder;
import io.onceflux.Database;
import io.onceflux.Order;
import io.onceflux.Outcome;
import io.onceflux.Settlement;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import reactor.core.Disposable;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/** Offsets that no message has: marks of transactions, aborted, compacted and deleted records. */
class OffsetGapsTest {

    private final Database database = Database.create();
    private final Broker broker = Broker.create();

    @AfterEach
    void close() {
        database.assertNothingLeaked();
        broker.close();
        database.close();
    }

    private void inTransaction(KafkaProducer<byte[], byte[]> producer, boolean commit, String... ids) {
        producer.beginTransaction();
        List<Future<RecordMetadata>> sent = Stream.of(ids)
                .map(id -> producer.send(broker.record(id, id, id)))
                .toList();
        producer.flush();
        assertThat(sent).allMatch(Future::isDone);
        if (commit) {
            producer.commitTransaction();
        } else {
            producer.abortTransaction();
        }
    }

    @Test
    void transactionsAreTakenWhenCommittedAndTheirMarksAndAbortedRecordsPassedOver() {
        broker.create(1);
        try (KafkaProducer<byte[], byte[]> producer = broker.transactional()) {
            for (int i = 0; i < 5; i++) {
                inTransaction(producer, true, "committed-a-" + i, "committed-b-" + i);
                inTransaction(producer, false, "aborted-" + i, "aborted-too-" + i);
            }
        }
        try (Running running = Running.start(broker.options().build(), database.pool(6), Order::apply)) {
            await().until(() -> database.effects() == 10);
            broker.awaitNoBacklog();
            assertThat(running.count(Outcome.Applied.class)).isEqualTo(10);
            try (KafkaProducer<byte[], byte[]> producer = broker.transactional()) {
                inTransaction(producer, false, "aborted-at-the-end");
            }
            broker.awaitNoBacklog();
            running.stop();
        }
        database.assertAppliedOnce(10);
    }

    @Test
    void whatCompactionTookAwayIsPassedOver() {
        broker.create(
                1,
                Map.of(
                        "cleanup.policy", "compact",
                        "segment.ms", "100",
                        "min.cleanable.dirty.ratio", "0.01",
                        "min.compaction.lag.ms", "0",
                        "delete.retention.ms", "0"));
        broker.publishAll(IntStream.range(0, 60)
                .<ProducerRecord<byte[], byte[]>>mapToObj(i -> broker.record("order-" + i, "k-" + i % 3, "order-" + i))
                .toList());
        await("the first segment is closed and compacted").until(() -> {
            broker.publish(broker.record("filler", "filler", "filler"));
            return broker.read(broker.topic()).size() < 40;
        });
        try (Running running = Running.start(broker.options().build(), database.pool(6), Order::apply)) {
            broker.awaitNoBacklog();
            assertThat(running.outcomes).isNotEmpty();
            running.stop();
        }
        assertThat(database.effects()).isBetween(2L, 40L);
    }

    @Test
    void aMessageThatIsLetGoAndThenDeletedFromTheTopicHoldsUpNothing() throws Exception {
        broker.create(1);
        broker.publish("gone", "kept");
        TopicPartition partition = new TopicPartition(broker.topic(), 0);
        AtomicBoolean deleted = new AtomicBoolean();
        List<String> seen = new CopyOnWriteArrayList<>();
        Disposable subscription = KafkaDeliveries.from(broker.options().build())
                .concatMap(delivery -> {
                    String text = new String(delivery.payload(), UTF_8);
                    seen.add(text);
                    boolean letGo = text.equals("gone") && !deleted.get();
                    return delivery.settle(letGo ? Settlement.requeue() : Settlement.acknowledge());
                })
                .subscribe();
        await().until(() -> Collections.frequency(seen, "gone") >= 2);
        broker.admin()
                .deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(1)))
                .all()
                .get();
        broker.awaitNoBacklog();
        deleted.set(true);
        broker.publish("canary");
        await().until(() -> seen.contains("canary"));
        broker.awaitNoBacklog();
        subscription.dispose();
        assertThat(new ArrayList<>(seen)).contains("kept");
    }

    @Test
    void oneSlowMessageStopsItsPartitionAtTheLimitAndNoOther() {
        broker.create(2);
        KafkaOptions options = broker.options()
                .maxDeferredCommits(50)
                .property("max.poll.records", 5)
                .build();
        broker.publish(broker.record(0, "slow", "slow"));
        for (int partition = 0; partition < 2; partition++) {
            int to = partition;
            broker.publishAll(Broker.ids("p" + partition + "-", 300).stream()
                    .<ProducerRecord<byte[], byte[]>>map(id -> broker.record(to, id, id))
                    .toList());
        }
        Sinks.Empty<Void> go = Sinks.empty();
        try (Running running = Running.start(
                options,
                database.pool(18),
                (order, db) -> (order.id().equals("slow") ? go.asMono() : Mono.<Void>empty()).then(order.note(db)),
                builder -> builder.lanes(16)
                        .maxInFlight(32)
                        .orderedBy(order -> order.id().equals("slow") ? 1 : 2))) {
            await().until(() -> database.count("SELECT count(*) FROM point_ledger WHERE order_id LIKE 'p1-%'") == 300);
            assertThat(database.count("SELECT count(*) FROM point_ledger WHERE order_id LIKE 'p0-%'"))
                    .as("the limit, what was in flight, and what had been polled")
                    .isBetween(1L, 100L);
            go.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);
            await().until(() -> database.effects() == 601);
            broker.awaitNoBacklog();
            running.stop();
        }
        database.assertAppliedOnce(601);
    }

    @Test
    void theSameThousandIdsUpwardsHereAndDownwardsThereAreAppliedOnceEach() {
        broker.create(2);
        String other = broker.topic() + "-downwards";
        broker.createTopic(other, 2, Map.of());
        broker.createTopic(other + ".DLT", 1, Map.of());
        List<String> ids = Broker.ids("order-", 1_000);
        List<String> downwards = new ArrayList<>(ids);
        Collections.reverse(downwards);
        broker.publish(ids);
        broker.publishAll(downwards.stream()
                .<ProducerRecord<byte[], byte[]>>map(id -> new ProducerRecord<>(
                        other,
                        null,
                        id.getBytes(UTF_8),
                        id.getBytes(UTF_8),
                        broker.record(id, id, id).headers()))
                .toList());
        KafkaOptions there = broker.quick(KafkaOptions.topic(other), Protocol.COOPERATIVE)
                .groupId(broker.group() + "-downwards")
                .messageIdFromHeader(Broker.ID)
                .build();
        UnaryOperator<ConsumerBuilder<Order>> grouped =
                consumer -> consumer.lanes(2).maxBatch(500).maxInFlight(2_000);
        try (Running up = Running.start(broker.options().build(), database.pool(10), Order::apply, grouped);
                Running down = Running.start(there, database.pool(10), Order::apply, grouped)) {
            await().until(() -> up.outcomes.size() == 1_000 && down.outcomes.size() == 1_000);
            broker.awaitNoBacklog();
            assertThat(up.count(Outcome.Failed.class) + down.count(Outcome.Failed.class))
                    .isZero();
            assertThat(up.count(Outcome.Applied.class) + down.count(Outcome.Applied.class))
                    .isEqualTo(1_000);
            up.stop();
            down.stop();
        }
        database.assertAppliedOnce(1_000);
        assertThat(broker.deadLetters()).isEmpty();
    }
}
