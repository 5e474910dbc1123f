package io.onceflux.kafka;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.onceflux.Claims;
import io.onceflux.ConsumerBuilder;
import io.onceflux.Database;
import io.onceflux.Delivery;
import io.onceflux.Effect;
import io.onceflux.FailurePolicy;
import io.onceflux.IdempotentConsumer;
import io.onceflux.Intake;
import io.onceflux.InvalidSetupException;
import io.onceflux.Order;
import io.onceflux.Outcome;
import io.onceflux.PermanentFailure;
import io.onceflux.RecordingListener;
import io.onceflux.postgres.ClaimTable;
import io.onceflux.postgres.DeadLetterTable;
import io.onceflux.postgres.OffsetTable;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Result;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/** A row for each partition in place of one for each message: what comes again is found, and nothing is passed over. */
class OffsetFenceTest {

    private static final OffsetTable TABLE = OffsetTable.consumerOffsets();

    private final Database database = Database.create();
    private final Broker broker = Broker.create();

    @BeforeEach
    void createTable() {
        database.run(TABLE.createSql());
    }

    @AfterEach
    void close() {
        database.assertNothingLeaked();
        broker.close();
        database.close();
    }

    private Running start(Effect<Order> effect) {
        return start(effect, builder -> builder);
    }

    private Running start(Effect<Order> effect, UnaryOperator<ConsumerBuilder<Order>> settings) {
        return start(broker.options(), effect, settings);
    }

    private Running start(
            KafkaOptions.Builder options, Effect<Order> effect, UnaryOperator<ConsumerBuilder<Order>> settings) {
        return Running.start(
                options.messageIdFromPosition().build(),
                database.pool(6),
                effect,
                builder -> settings.apply(builder.claims(OffsetFence.in(TABLE))));
    }

    private void assertAppliedOnce(long messages) {
        assertThat(database.rows("SELECT order_id, count(*) FROM point_ledger GROUP BY 1 HAVING count(*) > 1"))
                .as("effects that happened twice")
                .isEmpty();
        assertThat(database.effects()).as("effects").isEqualTo(messages);
        assertThat(database.claims()).as("rows of messages").isZero();
    }

    private long fence() {
        return database.count("SELECT coalesce(sum(next_offset), 0)::bigint FROM consumer_offsets");
    }

    /** In each partition, the ledger has them in the order of their numbers. */
    private void assertInOrder(int partitions) {
        for (int partition = 0; partition < partitions; partition++) {
            List<String> numbers = database.texts("SELECT split_part(order_id, '-', 2) FROM point_ledger"
                    + " WHERE order_id LIKE 'p" + partition + "-%' ORDER BY entry");
            assertThat(numbers.stream().map(Integer::valueOf).toList()).isSorted();
        }
    }

    private void publish(int partitions, int count) {
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        IntStream.range(0, count)
                .forEach(number -> IntStream.range(0, partitions)
                        .forEach(partition -> records.add(
                                broker.record(partition, "p" + partition + "-" + number, "key-" + number))));
        broker.publishAll(records);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 50})
    void aTopicThatIsReadAgainFromTheStartIsAllDuplicates(int maxBatch) {
        broker.create(3);
        publish(3, 100);
        try (Running running = start(Order::apply, builder -> builder.maxBatch(maxBatch))) {
            await().until(() -> running.outcomes.size() == 300);
            broker.awaitNoBacklog();
            assertThat(running.count(Outcome.Applied.class)).isEqualTo(300);
            running.stop();
        }
        assertThat(database.count("SELECT count(*) FROM consumer_offsets")).isEqualTo(3);
        assertThat(fence()).isEqualTo(300);
        assertInOrder(3);

        broker.resetTo(0);
        try (Running again = start(Order::apply, builder -> builder.maxBatch(maxBatch))) {
            await().until(() -> again.outcomes.size() == 300);
            broker.awaitNoBacklog();
            assertThat(again.count(Outcome.Duplicate.class)).isEqualTo(300);
            publish(3, 1);
            await().until(() -> again.count(Outcome.Applied.class) == 3);
            again.stop();
        }
        assertThat(database.effects()).isEqualTo(303);
        assertThat(fence()).isEqualTo(303);
    }

    @Test
    void whatAProducerSendsTwiceIsTwoMessages() {
        broker.create(1);
        broker.publish("order-1", "order-1");
        try (Running running = start(Order::apply)) {
            await().until(() -> running.count(Outcome.Applied.class) == 2);
            running.stop();
        }
        assertThat(database.effectsOf("order-1")).isEqualTo(2);
    }

    /** The client returns what it has fetched of one partition before it goes on to the next. Two may still share a lane. */
    @Test
    void aPartitionThatIsHeldUpDoesNotTakeThePlacesOfTheOthers() {
        broker.create(9);
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (int partition = 0; partition < 9; partition++) {
            for (int number = 0; number < (partition == 0 ? 1_000 : 100); number++) {
                records.add(broker.record(partition, "p" + partition + "-" + number, "key"));
            }
        }
        broker.publishAll(records);
        Sinks.Empty<Void> go = Sinks.empty();
        Effect<Order> effect =
                (order, db) -> (order.id().startsWith("p0-") ? go.asMono() : Mono.<Void>empty()).then(order.apply(db));
        try (Running running = Running.start(
                broker.options().messageIdFromPosition().build(),
                database.pool(34),
                effect,
                builder -> builder.claims(OffsetFence.in(TABLE)).lanes(32).maxInFlight(128))) {
            await().until(() -> database.effects() >= 400);
            go.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);
            await().until(() -> database.effects() == 1_800);
            broker.awaitNoBacklog();
            running.stop();
        }
        assertAppliedOnce(1_800);
        assertInOrder(9);
    }

    /** The poison is of three kinds, of which one does not even reach an attempt. */
    @ParameterizedTest
    @ValueSource(ints = {1, 64})
    void poisonIsPassedInItsPlaceAndWhatIsBesideItIsApplied(int maxBatch) {
        broker.create(2);
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (int number = 0; number < 200; number++) {
            for (int partition = 0; partition < 2; partition++) {
                String id = "p" + partition + "-" + number;
                boolean tombstone = number % 50 == 20;
                records.add(new ProducerRecord<>(
                        broker.topic(), partition, Broker.bytes("key"), tombstone ? null : Broker.bytes(id)));
            }
        }
        broker.publishAll(records);
        Effect<Order> effect = (order, db) -> {
            int number = Integer.parseInt(order.id().substring(3));
            if (number % 50 == 30 || number == 199) {
                throw new PermanentFailure("this one never");
            }
            return number % 50 == 40
                    ? order.apply(db).then(Mono.error(new IllegalStateException("not this one")))
                    : order.apply(db);
        };
        try (Running running = start(effect, builder -> builder.maxBatch(maxBatch))) {
            await().until(() -> running.outcomes.size() == 400);
            broker.awaitNoBacklog();
            running.stop();
        }
        int poison = 2 * (4 + 4 + 4 + 1);
        assertThat(broker.deadLetters()).hasSize(poison);
        assertAppliedOnce(400 - poison);
        assertInOrder(2);
        assertThat(fence()).as("also past the last, which is poison").isEqualTo(400);

        broker.resetTo(0);
        try (Running again = start(Order::apply, builder -> builder.maxBatch(maxBatch))) {
            await().until(() -> again.outcomes.size() == 400);
            assertThat(again.count(Outcome.Duplicate.class)).isEqualTo(400);
            broker.awaitNoBacklog();
            again.stop();
        }
        assertAppliedOnce(400 - poison);
        assertThat(broker.deadLetters()).hasSize(poison);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 20})
    void whoIsStoppedWhileAMessageIsTriedAgainPassesOverNone(int maxBatch) {
        broker.create(1);
        publish(1, 200);
        for (int round = 0; round < 5; round++) {
            int bad = 20 + 30 * round;
            AtomicInteger failures = new AtomicInteger();
            Effect<Order> effect = (order, db) -> {
                if (order.id().equals("p0-" + bad)) {
                    failures.incrementAndGet();
                    return Mono.error(new IllegalStateException("not now"));
                }
                return order.apply(db);
            };
            try (Running running = start(
                    effect,
                    builder -> builder.maxBatch(maxBatch)
                            .failurePolicy(FailurePolicy.builder()
                                    .maxAttempts(1_000)
                                    .backoff(Duration.ofMillis(20), Duration.ofMillis(50))
                                    .build()))) {
                await().until(() -> failures.get() > 3);
                running.stop();
            }
            assertThat(fence()).as("not past it").isLessThanOrEqualTo(bad);
        }
        try (Running running = start(Order::apply)) {
            await().until(() -> database.effects() == 200);
            broker.awaitNoBacklog();
            running.stop();
        }
        assertAppliedOnce(200);
        assertInOrder(1);
        assertThat(broker.deadLetters()).isEmpty();
    }

    /** The dead-letter topic takes nothing, because not even an empty record is small enough for it. */
    @Test
    void whoIsStoppedBeforeADeadLetterIsStoredPassesOverNone() {
        broker.create(1);
        broker.configure(broker.deadLetterTopic(), "max.message.bytes", "20");
        publish(1, 60);
        Effect<Order> effect = (order, db) ->
                order.id().equals("p0-20") ? Mono.error(new PermanentFailure("this one never")) : order.apply(db);
        UnaryOperator<ConsumerBuilder<Order>> longPauses = builder -> builder.maxBatch(30)
                .failurePolicy(FailurePolicy.builder()
                        .backoff(Duration.ofSeconds(2), Duration.ofSeconds(2))
                        .build());
        try (Running running = start(effect, longPauses)) {
            await().until(() -> !running.listener.settleFailures.isEmpty());
            running.stop();
        }
        assertThat(fence()).isEqualTo(20);
        assertAppliedOnce(20);

        broker.configure(broker.deadLetterTopic(), "max.message.bytes", "1000000");
        try (Running running = start(effect, builder -> builder.maxBatch(30))) {
            broker.awaitNoBacklog();
            running.stop();
        }
        assertAppliedOnce(59);
        assertThat(broker.deadLetters()).isNotEmpty();
        assertThat(fence()).isEqualTo(60);
    }

    /**
     * An attempt hangs while its partition goes and comes back: what had queued up behind it is lost, and what comes again queues up
     * behind that.
     */
    @Test
    void aPartitionThatComesBackWhileItsLaneIsBusyIsHandledFromItsFirstMessageOn() {
        broker.create(1);
        publish(1, 6);
        AtomicBoolean hangs = new AtomicBoolean(true);
        Effect<Order> effect = (order, db) -> hangs.getAndSet(false) ? Mono.never() : order.apply(db);
        try (Running one = start(
                broker.options().drainLimit(Duration.ofMillis(50)),
                effect,
                builder ->
                        builder.maxBatch(64).lockTimeout(Duration.ofSeconds(1)).timeLimit(Duration.ofSeconds(10)))) {
            await().until(() -> !hangs.get());
            try (Running two = start((order, db) -> Mono.never())) {
                await().ignoreExceptions().until(() -> broker.members().size() == 2);
                two.dispose();
            }
            broker.awaitMembers(1);
            await().until(() -> database.effects() == 6);
            broker.awaitNoBacklog();
            one.stop();
        }
        assertAppliedOnce(6);
        assertInOrder(1);
    }

    /** As by a process that was frozen in the middle of its transaction. */
    @Test
    void aRowThatSomebodyHasIsWaitedForAndNothingBecomesADeadLetter() {
        broker.create(1);
        publish(1, 5);
        try (Running running = start(Order::apply)) {
            await().until(() -> running.outcomes.size() == 5);
            running.stop();
        }
        Connection holder = Objects.requireNonNull(database.direct().create().block());
        Mono.from(holder.beginTransaction())
                .thenMany(holder.createStatement("SELECT * FROM consumer_offsets FOR UPDATE")
                        .execute())
                .concatMap(Result::getRowsUpdated)
                .then()
                .block(Duration.ofSeconds(10));
        publish(1, 5);
        try (Running running = start(
                Order::apply,
                builder -> builder.lockTimeout(Duration.ofMillis(50))
                        .failurePolicy(FailurePolicy.builder()
                                .maxAttempts(1)
                                .quarantineAfter(2)
                                .conflictTimeout(Duration.ofMillis(100))
                                .backoff(Duration.ofMillis(5), Duration.ofMillis(20))
                                .build()))) {
            await().until(() -> running.listener.retries.size() > 20);
            assertThat(running.outcomes).isEmpty();
            Mono.from(holder.rollbackTransaction())
                    .then(Mono.from(holder.close()))
                    .block(Duration.ofSeconds(10));
            await().until(() -> running.count(Outcome.Applied.class) == 5);
            running.stop();
        }
        assertThat(broker.deadLetters()).isEmpty();
        assertThat(database.effects()).isEqualTo(10);
    }

    @Test
    void aGroupThatWouldBeginAtTheEndIsRefused() {
        broker.create(1);
        publish(1, 30);
        try (Running running = start(Order::apply)) {
            await().until(() -> running.outcomes.size() == 30);
            running.stop();
        }
        KafkaOptions.Builder another =
                broker.options().groupId(broker.group() + "-green").property("auto.offset.reset", "latest");
        try (Running running = start(another, Order::apply, builder -> builder)) {
            assertThat(refusal(running)).contains("-green", broker.topic() + "-0", "offset 30", "earliest");
        }
    }

    /** Moved by a person, or the database was brought back from a backup: nobody here can know, but it should not go unnoticed. */
    @Test
    void messagesThatTheGroupHasPassedButTheFenceHasNotAreWarnedOf() {
        broker.create(2);
        publish(2, 30);
        try (Running running = start(Order::apply)) {
            await().until(() -> running.outcomes.size() == 60);
            running.stop();
        }
        publish(2, 40);
        broker.resetTo(70);
        try (Running running = start(Order::apply)) {
            await().until(() -> running.listener.warnings.size() == 2);
            assertThat(running.listener.warnings)
                    .allSatisfy(warning -> assertThat(warning)
                            .contains(broker.topic(), "before offset 30", "is at 70", "reset the group to 30"));
            running.stop();
        }
        broker.resetTo(30); // As the warning says.
        try (Running running = start(Order::apply)) {
            await().until(() -> running.count(Outcome.Applied.class) == 80);
            running.stop();
            assertThat(running.listener.warnings).isEmpty();
        }
        assertThat(database.effects()).isEqualTo(140);
    }

    @Test
    void marksOfTransactionsThatTheGroupHasPassedAreNoMessages() {
        broker.create(1);
        try (KafkaProducer<byte[], byte[]> producer = broker.transactional()) {
            for (int transaction = 0; transaction < 3; transaction++) {
                producer.beginTransaction();
                List<Future<RecordMetadata>> sent = Broker.ids("t" + transaction + "-", 5).stream()
                        .map(id -> producer.send(broker.record(id, id, id)))
                        .toList();
                assertThat(sent).hasSize(5);
                if (transaction == 2) {
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
        }
        try (Running running = start(Order::apply)) {
            await().until(() -> running.outcomes.size() == 10);
            broker.awaitNoBacklog();
            running.stop();
        }
        try (Running running = start(Order::apply)) {
            broker.publish("after");
            await().until(() -> running.outcomes.size() == 1);
            running.stop();
            assertThat(running.listener.warnings).isEmpty();
        }
        assertAppliedOnce(11);
    }

    @Test
    void aLogThatGoesOnAtAnOffsetThatWasThereBeforeEndsTheFlux() {
        Intake intake = new Intake(
                "loyalty",
                true,
                1,
                256,
                Duration.ZERO,
                false,
                OffsetFence.in(TABLE),
                null,
                new Intake.Connections() {
                    @Override
                    public <R> Mono<R> use(Function<Connection, Mono<R>> work) {
                        return Mono.error(new AssertionError("nobody needs the database"));
                    }
                },
                Mono.empty(),
                Mono.never(),
                () -> () -> {},
                new RecordingListener());
        Uuid topicId = Uuid.randomUuid();
        TopicPartition partition = new TopicPartition("orders", 0);
        Assignments assignments = new Assignments(
                names -> Map.of("orders", topicId),
                Fencing.of(intake, broker.options().messageIdFromPosition().build()),
                taken -> {});
        assignments.begin(List.of(partition));
        assignments.fetched(records(partition, 10, 11));
        assertThatThrownBy(() -> assignments.fetched(records(partition, 9)))
                .isInstanceOf(Fencing.BrokenFenceException.class)
                .hasMessageContaining("orders-0 goes on at offset 9")
                .hasMessageContaining("forget");
    }

    private static ConsumerRecords<byte[], byte[]> records(TopicPartition partition, long... offsets) {
        return new ConsumerRecords<>(Map.of(
                partition,
                LongStream.of(offsets)
                        .mapToObj(offset -> new ConsumerRecord<byte[], byte[]>(
                                partition.topic(), partition.partition(), offset, new byte[0], new byte[0]))
                        .toList()));
    }

    /** Instances come and go, and effects outlive their partition: some go on while its next owner has begun. */
    @ParameterizedTest
    @EnumSource(Protocol.class)
    void instancesThatComeAndGoAndConnectionsThatBreakLeaveEachMessageAppliedOnceAndInOrder(Protocol protocol) {
        broker.create(4);
        Effect<Order> effect = (order, db) -> Mono.delay(Duration.ofMillis(2)).then(order.apply(db));
        UnaryOperator<ConsumerBuilder<Order>> settings = builder -> builder.maxBatch(10);
        try (Running one = start(quick(protocol), effect, settings)) {
            publish(4, 600);
            await().until(() -> database.effects() > 100);
            for (int round = 0; round < 2; round++) {
                long before = database.effects();
                try (Running two = start(quick(protocol), effect, settings)) {
                    await().until(() -> !two.outcomes.isEmpty() || database.effects() == 2_400);
                    database.terminateSessions();
                    await().until(() -> database.effects() > before + 200 || database.effects() == 2_400);
                    if (round == 0) {
                        two.stop();
                    }
                }
            }
            await().until(() -> database.effects() == 2_400);
            broker.awaitNoBacklog();
            one.stop();
        }
        assertAppliedOnce(2_400);
        assertInOrder(4);
        assertThat(fence()).isEqualTo(2_400);
        assertThat(broker.deadLetters()).isEmpty();
    }

    private KafkaOptions.Builder quick(Protocol protocol) {
        return broker.options(protocol).drainLimit(Duration.ofMillis(50));
    }

    @Test
    void aRowThatIsRemovedWhileItRunsCostsNothing() {
        broker.create(1);
        Set<String> begun = ConcurrentHashMap.newKeySet();
        try (Running running = start((order, db) -> {
            begun.add(order.id());
            return order.apply(db);
        })) {
            publish(1, 50);
            await().until(() -> running.outcomes.size() == 50);
            database.run("DELETE FROM consumer_offsets");
            broker.publish(Broker.ids("later-", 50));
            await().until(() -> running.outcomes.size() == 100);
            broker.awaitNoBacklog();
            running.stop();
        }
        assertAppliedOnce(100);
        assertThat(fence()).isEqualTo(100);
    }

    private String refusal(Running running) {
        await().until(() -> running.error.get() != null);
        assertThat(running.error.get()).isInstanceOf(InvalidSetupException.class);
        return String.valueOf(running.error.get());
    }

    @Test
    void aTopicThatIsMadeAnewIsRefusedUntilItIsForgotten() {
        broker.create(1);
        publish(1, 30);
        try (Running running = start(Order::apply)) {
            await().until(() -> running.outcomes.size() == 30);
            broker.awaitNoBacklog();
            running.stop();
        }
        broker.delete(broker.topic());
        broker.createTopic(broker.topic(), 1, Map.of());
        broker.publish(Broker.ids("anew-", 20));
        try (Running running = start(Order::apply)) {
            assertThat(refusal(running)).contains(broker.topic(), "made again", "forget");
        }
        assertAppliedOnce(30);

        assertThat(OffsetFence.in(TABLE)
                        .forget(database.direct(), "loyalty", broker.topic())
                        .block(Duration.ofSeconds(10)))
                .isEqualTo(1);
        try (Running running = start(Order::apply)) {
            await().until(() -> database.effects() == 50);
            running.stop();
        }
        assertAppliedOnce(50);
    }

    @Test
    void aTopicThatIsMadeAnewWhileItIsConsumedStopsTheConsumer() {
        broker.create(1);
        publish(1, 30);
        try (Running running =
                start(broker.options().property("metadata.max.age.ms", 500), Order::apply, builder -> builder)) {
            await().until(() -> running.outcomes.size() == 30);
            broker.awaitNoBacklog();
            broker.delete(broker.topic());
            broker.createTopic(broker.topic(), 1, Map.of());
            broker.publish(Broker.ids("anew-", 20));
            assertThat(refusal(running)).contains(broker.topic(), "made again");
            assertThat(running.listener.refused).hasSize(1);
        }
        assertAppliedOnce(30);
    }

    /** The client goes on in it at its old place, and nothing goes back. */
    @Test
    void aTopicThatIsMadeAnewWhileItsConsumerIsBusyAndHasGrownPastItStopsTheConsumer() {
        broker.create(1);
        publish(1, 30);
        Sinks.Empty<Void> go = Sinks.empty();
        try (Running running = start((order, db) -> go.asMono().then(order.apply(db)))) {
            await().until(() -> IntStream.range(0, 4)
                    .anyMatch(lane -> running.consumer.lanes().inFlight(lane) > 0));
            broker.delete(broker.topic());
            broker.createTopic(broker.topic(), 1, Map.of());
            broker.publish(Broker.ids("anew-", 300));
            go.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);
            assertThat(refusal(running)).contains(broker.topic(), "made again");
        }
        assertThat(database.count("SELECT count(*) FROM point_ledger WHERE order_id LIKE 'anew-%'"))
                .isZero();
    }

    @Test
    void aLogThatEndsBeforeTheFenceIsRefused() {
        broker.create(1);
        publish(1, 30);
        try (Running running = start(Order::apply)) {
            await().until(() -> running.outcomes.size() == 30);
            running.stop();
        }
        database.run("UPDATE consumer_offsets SET next_offset = 1000");
        broker.publish(Broker.ids("order-", 10));
        try (Running running = start(Order::apply)) {
            assertThat(refusal(running)).contains(broker.topic() + "-0", "offset 1000", "ends at 40", "forget");
        }
        assertAppliedOnce(30);
    }

    /** Another instance has moved it since this one started, and what it stands for may have been cut meanwhile. */
    @ParameterizedTest
    @EnumSource(Protocol.class)
    void whoTakesAPartitionOverComparesItsLogWithTheFence(Protocol protocol) {
        broker.create(2);
        try (Running one = start(quick(protocol), Order::apply, builder -> builder);
                Running two = start(quick(protocol), Order::apply, builder -> builder)) {
            broker.awaitMembers(2);
            publish(2, 30);
            await().until(() -> one.outcomes.size() + two.outcomes.size() == 60);
            broker.awaitNoBacklog();
            database.run("UPDATE consumer_offsets SET next_offset = 1000");
            one.stop();
            assertThat(refusal(two)).contains(broker.topic(), "offset 1000", "ends at 30", "forget");
        }
        assertAppliedOnce(60);
    }

    @Test
    void aLogThatEndsBeforeTheGroupsOffsetEndsTheFluxUntilTheFenceIsForgotten() {
        broker.create(1);
        publish(1, 30);
        try (Running running = start(Order::apply)) {
            await().until(() -> running.outcomes.size() == 30);
            running.stop();
        }
        broker.resetTo(100); // As if there had been so many.
        broker.publish(Broker.ids("later-", 10));
        try (Running running = start(Order::apply)) {
            assertThat(refusal(running)).contains("goes on at offset 0", "forget");
        }
        assertThat(database.effects()).isEqualTo(30);

        assertThat(OffsetFence.in(TABLE)
                        .forget(database.direct(), "loyalty", broker.topic())
                        .block(Duration.ofSeconds(10)))
                .isEqualTo(1);
        try (Running running = start(Order::apply)) { // From the start, because the group is beyond the end.
            await().until(() -> database.effectsOf("later-9") == 1);
            running.stop();
        }
    }

    /** What a client has fetched and handed out. */
    public static final class Seen implements SeesRecords {

        static final Map<Integer, Long> LAST = new ConcurrentHashMap<>();

        @Override
        public ConsumerRecords<byte[], byte[]> onConsume(ConsumerRecords<byte[], byte[]> records) {
            records.forEach(record -> LAST.merge(record.partition(), record.offset(), Math::max));
            return records;
        }
    }

    /** However long it takes to read its place. */
    @ParameterizedTest
    @EnumSource(Protocol.class)
    void nothingOfAPartitionThatIsTakenOverIsFetchedBeforeTheFenceWasRead(Protocol protocol) {
        broker.create(2);
        publish(2, 30);
        Seen.LAST.clear();
        try (Running one = start(quick(protocol), Order::apply, builder -> builder);
                Running two = start(
                        quick(protocol).property("interceptor.classes", Seen.class.getName()),
                        Order::apply,
                        builder -> builder)) {
            broker.awaitMembers(2);
            await().until(() -> one.outcomes.size() + two.outcomes.size() >= 60);
            broker.awaitNoBacklog();
            database.run("ALTER TABLE consumer_offsets RENAME TO elsewhere");
            one.stop();
            await().until(() ->
                    broker.members().size() == 1 && broker.members().get(0).size() == 2);
            publish(2, 40);
            await().during(Duration.ofSeconds(2))
                    .until(() -> Seen.LAST.values().stream()
                                    .filter(last -> last >= 30)
                                    .count()
                            <= 1);
            assertThat(two.error.get()).isNull();
            database.run("ALTER TABLE elsewhere RENAME TO consumer_offsets");

            await().until(() -> database.effects() == 140);
            assertThat(Seen.LAST.values()).containsExactly(69L, 69L);
            broker.awaitNoBacklog();
            two.stop();
        }
        assertThat(database.effects()).isEqualTo(140);
    }

    @Test
    void aTableThatIsMissingOrGoneWithACrashIsRefused() {
        broker.create(1);
        database.run("ALTER TABLE consumer_offsets SET UNLOGGED");
        try (Running running = start(Order::apply)) {
            assertThat(refusal(running)).contains("consumer_offsets", "UNLOGGED");
        }
        database.run("DROP TABLE consumer_offsets");
        try (Running running = start(Order::apply)) {
            assertThat(refusal(running)).contains("consumer_offsets", "does not exist", "CREATE TABLE");
        }
    }

    /** What docs/security.md says is enough. */
    @Test
    void aRoleWithoutTheRightToDeleteHasAllThatIsNeeded() {
        String role = "fenced_" + System.nanoTime();
        database.run("""
                CREATE ROLE %1$s LOGIN PASSWORD 'secret';
                GRANT USAGE ON SCHEMA public TO %1$s;
                GRANT SELECT, INSERT, UPDATE ON consumer_offsets TO %1$s;
                GRANT SELECT, INSERT, UPDATE ON balances TO %1$s;
                GRANT INSERT ON point_ledger TO %1$s""".formatted(role));
        broker.create(1);
        publish(1, 10);
        try (Running running = Running.start(
                broker.options().messageIdFromPosition().build(),
                database.pool(6, database.configuration().username(role).password("secret")),
                Order::apply,
                builder -> builder.claims(OffsetFence.in(TABLE)))) {
            await().until(() -> running.count(Outcome.Applied.class) == 10);
            running.stop();
        }
        assertAppliedOnce(10);
        database.closePools();
        database.run("DROP OWNED BY %1$s; DROP ROLE %1$s".formatted(role));
    }

    @Test
    void anotherOrderOrIdOrAPlaceForDeadLettersThatCannotBeReplayedIsRefused() {
        broker.create(1);
        assertRefused(builder -> builder.orderedBy(Order::customer), "orderedBy");
        assertRefused(builder -> builder.identifiedBy(Order::id), "identifiedByMessageId()");
        assertRefused(builder -> builder.deadLetterTable(DeadLetterTable.deadLetters()), "deadLetterTable");
        try (Running running = Running.start(
                broker.options().build(),
                database.pool(6),
                Order::apply,
                builder -> builder.claims(OffsetFence.in(TABLE)))) {
            assertThat(refusal(running)).contains("messageIdFromPosition()");
        }
    }

    private void assertRefused(UnaryOperator<ConsumerBuilder<Order>> settings, String sentence) {
        assertThatThrownBy(() -> settings.apply(consumer()).build(database.pool(6)))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining(sentence)
                .hasMessageContaining("consumer_offsets");
    }

    private static ConsumerBuilder<Order> consumer() {
        return IdempotentConsumer.<Order>named("loyalty")
                .lanes(4)
                .identifiedByMessageId()
                .effect(Order::apply)
                .claims(OffsetFence.in(TABLE));
    }

    @Test
    void aMessageThatComesFromNoTopicIsRefused() {
        IdempotentConsumer<Order> consumer = consumer().build(database.pool(6));
        assertThatThrownBy(() -> consumer.process(Delivery.of("topic:0:7", Order.of("a")))
                        .block(Duration.ofSeconds(10)))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("process would pass over");
        assertThatThrownBy(() -> consumer.claimInTransaction("topic:0:7").block(Duration.ofSeconds(10)))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("claimInTransaction would pass over");
        assertThat(database.effects()).isZero();
    }

    @Test
    void aFenceGivesWayToAClaimTableAndBack() throws Exception {
        broker.create(1);
        publish(1, 20);
        for (int round = 0; round < 4; round++) {
            Claims claims = round % 2 == 0 ? OffsetFence.in(TABLE) : Claims.in(ClaimTable.processedMessages());
            try (Running running = Running.start(
                    broker.options().messageIdFromPosition().build(),
                    database.pool(6),
                    Order::apply,
                    builder -> builder.claims(claims))) {
                broker.awaitNoBacklog();
                broker.publish(Broker.ids("round-" + round + "-", 20));
                int expected = 20 * (round + 2);
                await().until(() -> database.effects() == expected);
                broker.awaitNoBacklog();
                running.stop();
            }
        }
        assertThat(database.rows("SELECT order_id, count(*) FROM point_ledger GROUP BY 1 HAVING count(*) > 1"))
                .isEmpty();
    }
}
