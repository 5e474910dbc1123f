package io.onceflux.kafka;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.Database;
import io.onceflux.Effect;
import io.onceflux.Order;
import io.onceflux.Outcome;
import io.onceflux.services.PostgresService;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/** Instances come and go; times are scaled down by the settings of {@link Broker#options} and of each test. */
class RebalanceTest {

    private final Database database = Database.create();
    private final Broker broker = Broker.create();

    @AfterEach
    void close() {
        database.assertNothingLeaked();
        broker.close();
        database.close();
    }

    private Running start(KafkaOptions options, Effect<Order> effect) {
        return Running.start(options, database.pool(6), effect);
    }

    private void assertHandlesACanary(int before) {
        broker.publish("canary");
        await().untilAsserted(() -> assertThat(database.effectsOf("canary")).isEqualTo(1));
        broker.awaitNoBacklog();
        database.assertAppliedOnce(before + 1L);
        assertThat(broker.deadLetters()).isEmpty();
    }

    private boolean isRevokingPartitions() {
        return Thread.getAllStackTraces().entrySet().stream()
                .filter(thread -> thread.getKey().getName().contains(broker.group()))
                .flatMap(thread -> Arrays.stream(thread.getValue()))
                .anyMatch(frame -> frame.getMethodName().equals("awaitQuiet"));
    }

    @ParameterizedTest
    @EnumSource(Protocol.class)
    void instancesJoinAndLeaveUnderLoadAndEveryMessageIsAppliedOnce(Protocol protocol) {
        int first = protocol == Protocol.COOPERATIVE ? 20_000 : 2_000;
        AtomicInteger messages = new AtomicInteger(first);
        broker.create(6);
        KafkaOptions options = broker.options(protocol).build();
        Effect<Order> effect = (order, db) -> Mono.delay(Duration.ofMillis(1)).then(order.note(db));
        Map<String, Integer> outcomes = new ConcurrentHashMap<>();
        try (Running one = start(options, effect)) {
            broker.publish(Broker.ids("order-", first));
            await().until(() -> database.effects() > first / 20);
            try (Running two = start(options, effect);
                    Running three = start(options, effect)) {
                await("each has a share").until(() -> {
                    if (!two.outcomes.isEmpty() && !three.outcomes.isEmpty()) {
                        return true;
                    }
                    broker.publish(Broker.ids("order-" + messages.getAndAdd(100) + "-", 100));
                    return false;
                });
                two.stop();
                await().atMost(Duration.ofMinutes(3)).until(() -> database.effects() == messages.get());
                broker.awaitNoBacklog();
                for (Running running : List.of(one, two, three)) {
                    running.outcomes.forEach(
                            outcome -> outcomes.merge(outcome.getClass().getSimpleName(), 1, Integer::sum));
                    assertThat(running.error.get()).isNull();
                }
                assertHandlesACanary(messages.get());
                three.stop();
            }
            one.stop();
        }
        assertThat(outcomes).containsEntry("Applied", messages.get()).doesNotContainKey("Failed");
        System.out.println("K1 " + protocol + ": " + outcomes);
    }

    /** A member that has gone silent holds up the others, for as long as its max.poll.interval.ms. */
    @Test
    void whoIsStoppedWhileTheGroupSharesItsPartitionsAnewCommitsWhatIsDone() {
        broker.create(4);
        KafkaOptions options = broker.options(Protocol.COOPERATIVE).build();
        try (Running one = start(options, Order::apply)) {
            broker.awaitMembers(1); // The first one shares the partitions out: the others here do not always poll.
            try (KafkaConsumer<byte[], byte[]> silent = member(3_000);
                    KafkaConsumer<byte[], byte[]> joining = member(60_000)) {
                await().until(() -> {
                    silent.poll(Duration.ofMillis(50));
                    return broker.members().stream()
                                    .filter(its -> !its.isEmpty())
                                    .count()
                            == 2;
                });
                await().until(() -> {
                    joining.poll(Duration.ofMillis(50));
                    return isSharingAnew();
                });
                List<ProducerRecord<byte[], byte[]>> records = IntStream.range(0, 200)
                        .<ProducerRecord<byte[], byte[]>>mapToObj(n -> broker.record(n % 4, "m" + n, "key-" + n % 4))
                        .toList();
                broker.publishAll(records);
                await().until(() -> database.effects() == 100);

                one.stop();

                assertThat(broker.committed().values().stream()
                                .mapToLong(OffsetAndMetadata::offset)
                                .sum())
                        .as("of the two partitions that it had")
                        .isEqualTo(100);
                assertThat(one.listener.lost).isEmpty();
            }
        }
    }

    private boolean isSharingAnew() {
        try {
            return broker
                    .admin()
                    .describeConsumerGroups(List.of(broker.group()))
                    .all()
                    .get(10, TimeUnit.SECONDS)
                    .values()
                    .stream()
                    .anyMatch(group -> group.state().name().equals("PREPARING_REBALANCE"));
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private KafkaConsumer<byte[], byte[]> member(int maxPollInterval) {
        Map<String, Object> settings = new HashMap<>(Protocol.COOPERATIVE.settings());
        settings.putAll(Map.of(
                "bootstrap.servers",
                broker.bootstrap(),
                "group.id",
                broker.group(),
                "auto.offset.reset",
                "earliest",
                "enable.auto.commit",
                false,
                "max.poll.interval.ms",
                maxPollInterval));
        KafkaConsumer<byte[], byte[]> member =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        member.subscribe(List.of(broker.topic()));
        return member;
    }

    /** In each partition the first message is under way, and the others have its key, so they wait for it. */
    @ParameterizedTest
    @EnumSource(Protocol.class)
    void whatIsUnderWayIsWaitedForAndCommittedAndWhatHasNotBegunGoesToTheNextOwner(Protocol protocol) {
        broker.create(2);
        KafkaOptions options = broker.options(protocol).build();
        Set<String> begun = ConcurrentHashMap.newKeySet();
        Sinks.Empty<Void> go = Sinks.empty();
        for (int partition = 0; partition < 2; partition++) {
            int to = partition;
            broker.publishAll(Broker.ids("p" + to + "-", 20).stream()
                    .<ProducerRecord<byte[], byte[]>>map(id -> broker.record(to, id, "key-" + to))
                    .toList());
        }
        try (Running one = Running.start(
                options,
                database.pool(34),
                (order, db) -> Mono.defer(() -> {
                            begun.add(order.id());
                            return go.asMono();
                        })
                        .then(order.apply(db)),
                builder -> builder.lanes(32))) {
            await().until(() -> begun.size() == 2);
            assertThat(begun).containsExactlyInAnyOrder("p0-0", "p1-0");
            try (Running two = start(options, Order::apply)) {
                await("a partition is taken away").until(this::isRevokingPartitions);
                go.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);
                await().until(() -> database.effects() == 40);
                broker.awaitMembers(2);
                broker.awaitNoBacklog();
                assertThat(two.count(Outcome.Applied.class)).isGreaterThanOrEqualTo(19);
                assertThat(one.count(Outcome.Duplicate.class) + two.count(Outcome.Duplicate.class))
                        .as("what was under way was committed")
                        .isZero();
                assertThat(one.listener.settleFailures).isEmpty();
                assertThat(one.listener.dropped).as("what had not begun").hasSizeGreaterThanOrEqualTo(19);
                two.stop();
            }
            one.stop();
        }
        database.assertAppliedOnce(40);
    }

    @Test
    void whatIsUnderWayForLongerThanTheDrainLimitIsADuplicateElsewhere() {
        broker.create(2);
        KafkaOptions options = broker.options(Protocol.COOPERATIVE)
                .drainLimit(Duration.ofMillis(300))
                .build();
        AtomicInteger begun = new AtomicInteger();
        Sinks.Empty<Void> go = Sinks.empty();
        broker.publish(Broker.ids("order-", 8));
        try (Running one = start(
                options,
                (order, db) -> Mono.defer(() -> {
                            begun.incrementAndGet();
                            return go.asMono();
                        })
                        .then(order.apply(db)))) {
            await().until(() -> begun.get() == 4);
            try (Running two = start(options, Order::apply)) {
                broker.awaitMembers(2);
                await().until(() -> !two.outcomes.isEmpty());
                go.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);
                await().until(() -> database.effects() == 8);
                broker.awaitNoBacklog();
                two.stop();
            }
            one.stop();
        }
        database.assertAppliedOnce(8);
    }

    @Test
    void effectsThatEndInReverseOrderAndFewDeferredCommitsAndTenRebalancesLeaveNoLag() {
        broker.create(3);
        KafkaOptions options =
                broker.options(Protocol.COOPERATIVE).maxDeferredCommits(2).build();
        AtomicInteger count = new AtomicInteger();
        Effect<Order> reversed = (order, db) -> Mono.delay(Duration.ofMillis(8L * (4 - count.incrementAndGet() % 4)))
                .then(order.note(db));
        try (Running one = start(options, reversed)) {
            broker.awaitMembers(1);
            for (int round = 0; round < 5; round++) { // Each is two rebalances: one joins and leaves.
                broker.publish(Broker.ids("order-" + round + "-", 60));
                try (Running other = start(options, reversed)) {
                    broker.awaitMembers(2);
                    await().until(() -> !other.outcomes.isEmpty() || broker.lag() == 0);
                    other.stop();
                }
            }
            await().until(() -> database.effects() == 300);
            broker.awaitNoBacklog();
            assertThat(one.listener.warnings).anyMatch(warning -> warning.contains("maxDeferredCommits 2"));
            assertHandlesACanary(300);
            one.stop();
        }
    }

    @ParameterizedTest
    @EnumSource(
            value = Protocol.class,
            names = {"COOPERATIVE", "CONSUMER"})
    void anEffectLongerThanTheMaxPollIntervalThenARebalanceAndALongPauseThrowNobodyOut(Protocol protocol) {
        broker.create(2);
        KafkaOptions options = broker.options(protocol)
                .property("max.poll.interval.ms", 1_500)
                .drainLimit(Duration.ofSeconds(1))
                .build();
        Effect<Order> effect = (order, db) -> order.id().startsWith("slow")
                ? Mono.delay(Duration.ofMillis(2_500)).then(order.apply(db))
                : order.apply(db);
        broker.publish(Broker.ids("slow-", 4));
        try (Running one = start(options, effect)) {
            await().until(() -> database.effects() == 4);
            broker.awaitNoBacklog();
            assertThat(one.count(Outcome.Applied.class)).isEqualTo(4);
            assertThat(one.listener.lost).as("it was not thrown out").isEmpty();

            try (Running two = start(options, effect)) {
                broker.awaitMembers(2);
                two.stop();
            }
            broker.awaitMembers(1);
            await("idle for twice the interval")
                    .during(Duration.ofSeconds(3))
                    .until(() -> broker.members().size() == 1 && one.listener.lost.isEmpty());
            assertHandlesACanary(4);
            one.stop();
        }
    }

    @Test
    void whileTheDatabaseIsAwayARebalanceStartsNoLoopAndWorkGoesOnLater() {
        broker.create(4);
        KafkaOptions options = broker.options(Protocol.COOPERATIVE)
                .drainLimit(Duration.ofSeconds(1))
                .build();
        try (PostgresService postgres = PostgresService.start();
                Database away = Database.on(postgres);
                Running one = Running.start(options, away.pool(6), Order::apply, builder -> builder.maxInFlight(8))) {
            broker.publish("before");
            await().until(() -> away.effects() == 1);

            postgres.kill();
            broker.publish(Broker.ids("order-", 100));
            await().until(() -> one.listener.held.size() == 1);
            try (Running two = Running.start(options, database.pool(6), (order, db) -> Mono.never())) {
                broker.awaitMembers(2);
                two.dispose();
            }
            broker.awaitMembers(1);
            int attempts = one.listener.retries.size();
            int dropped = one.listener.dropped.size();
            await("it is held, and does not spin")
                    .during(Duration.ofSeconds(3))
                    .until(() -> one.listener.dropped.size() <= dropped + 8);
            assertThat(one.listener.retries.size() - attempts)
                    .as("four lanes, a pause of 100 to 200 ms")
                    .isLessThan(4 * 50);
            assertThat(one.listener.lost).isEmpty();
            postgres.restart();

            await().until(() -> away.effects() == 101);
            broker.awaitNoBacklog();
            assertThat(one.count(Outcome.Failed.class)).isZero();
            one.stop();
            away.assertAppliedOnce(101);
        }
        assertThat(broker.deadLetters()).isEmpty();
    }

    @Test
    void recordsOfAPartitionWithTheSameKeyKeepTheirOrder() {
        broker.create(2);
        broker.publishAll(IntStream.range(0, 300)
                .<ProducerRecord<byte[], byte[]>>mapToObj(
                        i -> broker.record("m-" + i, "k-" + i % 5, "%03d".formatted(i)))
                .toList());
        try (Running one = start(
                broker.options().build(),
                (order, db) -> Mono.delay(Duration.ofMillis(Long.parseLong(order.id()) % 7))
                        .then(new Order(order.id(), "k-" + Long.parseLong(order.id()) % 5, 1).note(db)))) {
            await().until(() -> database.effects() == 300);
            broker.awaitNoBacklog();
            one.stop();
        }
        for (int key = 0; key < 5; key++) {
            assertThat(database.texts("SELECT order_id FROM point_ledger WHERE customer_id = 'k-%d' ORDER BY entry"
                            .formatted(key)))
                    .hasSize(60)
                    .isSorted();
        }
    }
}
