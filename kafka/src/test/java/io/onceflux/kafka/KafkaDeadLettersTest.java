package io.onceflux.kafka;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.onceflux.Database;
import io.onceflux.DeadLetter;
import io.onceflux.DeadLetters;
import io.onceflux.Effect;
import io.onceflux.FailureKind;
import io.onceflux.InvalidSetupException;
import io.onceflux.Order;
import io.onceflux.Outcome;
import io.onceflux.PermanentFailure;
import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.config.ConfigResource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;

class KafkaDeadLettersTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);

    private final Database database = Database.create();
    private final Broker broker = Broker.create();
    private final DeadLetters letters = KafkaDeadLetters.of(broker.options().build());
    private final Set<String> refused = ConcurrentHashMap.newKeySet();
    private final Effect<Order> effect = (order, db) -> refused.contains(order.id())
            ? Mono.error(new PermanentFailure("no customer for " + order.id()))
            : order.apply(db);

    @AfterEach
    void close() {
        database.assertNothingLeaked();
        broker.close();
        database.close();
    }

    private Running running() {
        return Running.start(broker.options().build(), database.pool(6), effect);
    }

    private void giveUp(String... ids) {
        broker.create(2);
        refused.addAll(List.of(ids));
        broker.publish(ids);
        try (Running running = running()) {
            broker.awaitDeadLetters(ids.length);
            broker.awaitNoBacklog();
            running.stop();
        }
        refused.clear();
    }

    private List<DeadLetter> list() {
        return Objects.requireNonNull(letters.list().collectList().block(LIMIT));
    }

    private List<DeadLetter> replayAll() {
        return Objects.requireNonNull(
                letters.replay(letter -> true, 100).collectList().block(LIMIT));
    }

    @Test
    void whatIsListedSaysWhyAndStaysInItsPlace() {
        giveUp("1", "2", "3");

        for (int round = 0; round < 2; round++) {
            assertThat(list()).extracting(DeadLetter::messageKey).containsExactlyInAnyOrder("1", "2", "3");
        }
        assertThat(list()).allSatisfy(letter -> {
            assertThat(letter.reason()).isEqualTo("no customer for " + letter.messageKey());
            assertThat(letter.kind()).isEqualTo(FailureKind.PERMANENT);
            assertThat(letter.consumer()).isEqualTo("loyalty");
            assertThat(letter.attempts()).isEqualTo(1);
            assertThat(letter.time()).isBeforeOrEqualTo(Instant.now());
            assertThat(new String(letter.body(), UTF_8)).isEqualTo(letter.messageKey());
            assertThat(letter.headers()).containsEntry("kafka-key", letter.messageKey());
        });
    }

    /** A tool that lists and ends must not wait for a thread. */
    @Test
    void lookingLeavesNoThreadThatKeepsTheProcessAlive() {
        giveUp("1");
        Set<Thread> before = Thread.getAllStackTraces().keySet();

        list();

        assertThat(Thread.getAllStackTraces().keySet())
                .filteredOn(thread -> !thread.isDaemon() && !before.contains(thread))
                .isEmpty();
    }

    @Test
    void whatIsChosenIsAppliedOnceAndTheRestStays() {
        giveUp("1", "2", "3");

        List<DeadLetter> replayed =
                Objects.requireNonNull(letters.replay(letter -> letter.reason().contains("for 2"), 100)
                        .collectList()
                        .block(LIMIT));
        assertThat(replayed).extracting(DeadLetter::messageKey).containsExactly("2");
        try (Running running = running()) {
            await().until(() -> database.effectsOf("2") == 1);
            broker.awaitNoBacklog();
            running.stop();
        }
        assertThat(list()).extracting(DeadLetter::messageKey).containsExactlyInAnyOrder("1", "3");
        assertThat(replayAll()).extracting(DeadLetter::messageKey).containsExactlyInAnyOrder("1", "3");
        assertThat(list()).isEmpty();
        database.assertAppliedOnce(1);
    }

    @Test
    void aMessageThatWasAppliedMeanwhileIsADuplicate() {
        giveUp("1");
        broker.publish("1");
        try (Running running = running()) {
            await().until(() -> database.effects() == 1);
            assertThat(replayAll()).hasSize(1);
            await().until(() -> running.count(Outcome.Duplicate.class) == 1);
            broker.awaitNoBacklog();
            running.stop();
        }
        assertThat(list()).isEmpty();
        database.assertAppliedOnce(1);
    }

    /** Each would make a message of it, and where that is known by its position, nobody could tell them apart. */
    @Test
    void ofTwoReplaysAtOnceTheLaterGoesOnWhereTheOtherEnds() {
        List<String> ids = Broker.ids("order-", 40);
        giveUp(ids.toArray(String[]::new));
        List<DeadLetter> ofFirst = new CopyOnWriteArrayList<>();
        CompletableFuture<Void> first =
                letters.replay(letter -> true, 20).doOnNext(ofFirst::add).then().toFuture();
        await().until(() -> ofFirst.size() >= 5);
        List<DeadLetter> ofSecond = replayAll();

        assertThat(first)
                .failsWithin(LIMIT)
                .withThrowableOfType(ExecutionException.class)
                .withMessageContaining("another replay of topic '%s' has begun".formatted(broker.deadLetterTopic()));
        assertThat(Stream.concat(ofFirst.stream(), ofSecond.stream()).map(DeadLetter::messageKey))
                .hasSizeBetween(39, 40) // Of the last one of the first, the commit may have had no answer.
                .doesNotHaveDuplicates();
        assertThat(list()).isEmpty();
        try (Running running = running()) {
            await().until(() -> running.outcomes.size() == 40);
            broker.awaitNoBacklog();
            assertThat(running.count(Outcome.Applied.class)).isEqualTo(40);
            running.stop();
        }
        database.assertAppliedOnce(40);
    }

    @Test
    void whatFailsAgainAtOnceIsReplayedOnceAndTheReplayEnds() {
        giveUp("1", "2");
        refused.addAll(Set.of("1", "2"));
        try (Running running = running()) {
            assertThat(letters.replay(letter -> true, 5).collectList().block(LIMIT))
                    .hasSize(2);
            await().until(() -> running.count(Outcome.Failed.class) == 2);
            broker.awaitNoBacklog();
            running.stop();
        }
        assertThat(list()).hasSize(2).extracting(DeadLetter::messageKey).containsExactlyInAnyOrder("1", "2");
    }

    @Test
    void itComesBackAsItWasWithItsNullsAndWithoutWhatSaidWhy() {
        broker.create(1);
        ProducerRecord<byte[], byte[]> odd = broker.record("odd", "k", null);
        odd.headers().add("trace", "a-b".getBytes(UTF_8));
        odd.headers().add("trace", "c".getBytes(UTF_8));
        odd.headers().add("nothing", null);
        broker.publish(odd);
        try (Running running = running()) {
            broker.awaitDeadLetters(1);
            running.stop();
        }
        assertThat(replayAll())
                .singleElement()
                .satisfies(letter -> assertThat(letter.body()).isEmpty());

        List<ConsumerRecord<byte[], byte[]>> all = broker.read(broker.topic());
        assertThat(all).hasSize(2);
        ConsumerRecord<byte[], byte[]> back = all.get(1);
        assertThat(back.key()).isEqualTo("k".getBytes(UTF_8));
        assertThat(back.value()).isNull();
        assertThat(back.headers()).isEqualTo(all.get(0).headers());
    }

    @Test
    void aRecordOfSomebodyElseIsListedAndGoesBackToTheTopic() {
        broker.create(1);
        broker.publish(new ProducerRecord<>(broker.deadLetterTopic(), null, "x".getBytes(UTF_8)));
        assertThat(list()).singleElement().satisfies(letter -> {
            assertThat(letter.reason()).isEqualTo("unknown");
            assertThat(letter.kind()).isNull();
            assertThat(letter.consumer()).isNull();
        });
        replayAll();
        assertThat(broker.read(broker.topic())).hasSize(1);
    }

    @Test
    void cancellingEndsItAndLeavesNothingBehind() {
        giveUp("1", "2", "3");
        assertThat(letters.list().take(1).collectList().block(LIMIT)).hasSize(1);
        await().until(() -> Thread.getAllStackTraces().keySet().stream()
                .noneMatch(thread -> thread.getName().contains(broker.group())));
        assertThat(list()).hasSize(3);
    }

    @Test
    void aReplayKeepsToItsRate() {
        giveUp("1", "2", "3", "4", "5");
        Duration took = Objects.requireNonNull(letters.replay(letter -> true, 10)
                .elapsed()
                .map(each -> Duration.ofMillis(each.getT1()))
                .reduce(Duration::plus)
                .block(LIMIT));
        assertThat(took).isGreaterThanOrEqualTo(Duration.ofMillis(450));
    }

    @Test
    void whatIsTooLargeForTheTopicIsKeptInPartSaysSoAndIsNotReplayed() {
        broker.createTopic(broker.topic(), 1, Map.of("max.message.bytes", "4000000"));
        broker.createTopic(broker.deadLetterTopic(), 1, Map.of("max.message.bytes", "100000"));
        byte[] random = new byte[2_000_000]; // Does not compress.
        new Random(1).nextBytes(random);
        random[0] = 1;
        ProducerRecord<byte[], byte[]> large = new ProducerRecord<>(broker.topic(), "k".getBytes(UTF_8), random);
        large.headers().add(Broker.ID, "large".getBytes(UTF_8));
        large.headers().add("tenant", "acme".getBytes(UTF_8));
        ProducerRecord<byte[], byte[]> wide = new ProducerRecord<>(broker.topic(), "k".getBytes(UTF_8), null);
        wide.headers().add(Broker.ID, "wide".getBytes(UTF_8));
        wide.headers().add("noise", random);
        ProducerRecord<byte[], byte[]> keyed = new ProducerRecord<>(broker.topic(), random, null);
        keyed.headers().add(Broker.ID, "keyed".getBytes(UTF_8));
        broker.publishAll(List.of(large, wide, keyed));
        broker.publish("good");
        try (Running running = Running.start(
                broker.options().build(),
                database.pool(6),
                (order, db) -> order.id().equals("good")
                        ? order.apply(db)
                        : Mono.error(new PermanentFailure("r".repeat(2_000))))) {
            await().until(() -> database.effects() == 1 && running.count(Outcome.Failed.class) == 3);
            broker.awaitNoBacklog();
            running.stop();
        }

        List<ConsumerRecord<byte[], byte[]>> kept = broker.deadLetters();
        assertThat(kept).hasSize(3).allSatisfy(letter -> {
            assertThat(Broker.header(letter, "topic")).isEqualTo(broker.topic());
            assertThat(Broker.header(letter, "left-out")).contains("too large for the topic");
        });
        ConsumerRecord<byte[], byte[]> part = byOffset(kept, 0);
        assertThat(part.value())
                .hasSizeBetween(40_000, 100_000)
                .isEqualTo(java.util.Arrays.copyOf(random, part.value().length));
        assertThat(part.key()).isEqualTo("k".getBytes(UTF_8));
        assertThat(new String(part.headers().lastHeader("tenant").value(), UTF_8))
                .isEqualTo("acme");
        assertThat(Broker.header(part, "left-out")).startsWith("value (" + part.value().length + " of 2000000 bytes");
        assertThat(byOffset(kept, 1).key()).isEqualTo("k".getBytes(UTF_8));
        assertThat(byOffset(kept, 1).headers().lastHeader("noise")).isNull();
        assertThat(byOffset(kept, 2).key()).isNull();
        assertThat(Broker.header(byOffset(kept, 2), "left-out")).startsWith("key, headers, value");

        assertThat(replayAll()).as("parts are not given back").isEmpty();
        assertThat(list()).hasSize(3);
    }

    /** Or the topic's consumers would wait behind it for as long as a transaction may last. */
    @Test
    void whatTheTopicDoesNotTakeBackIsUndoneAtOnceAndStaysADeadLetter() throws Exception {
        byte[] random = new byte[3_000]; // Does not compress.
        new Random(1).nextBytes(random);
        giveUp(HexFormat.of().formatHex(random));
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, broker.topic());
        broker.admin()
                .incrementalAlterConfigs(Map.of(
                        topic,
                        List.of(new AlterConfigOp(
                                new ConfigEntry("max.message.bytes", "1000"), AlterConfigOp.OpType.SET))))
                .all()
                .get();

        assertThatThrownBy(this::replayAll)
                .hasCauseInstanceOf(IOException.class)
                .hasMessageContaining("could not be given back")
                .hasMessageContaining("RecordTooLargeException");
        String id = "onceflux-replay-" + broker.deadLetterTopic();
        assertThat(broker.admin()
                        .describeTransactions(List.of(id))
                        .description(id)
                        .get()
                        .state())
                .isNotIn(TransactionState.ONGOING, TransactionState.PREPARE_COMMIT);
        assertThat(list()).hasSize(1);
    }

    private static ConsumerRecord<byte[], byte[]> byOffset(List<ConsumerRecord<byte[], byte[]>> letters, long offset) {
        return letters.stream()
                .filter(letter -> Long.toString(offset).equals(Broker.header(letter, "offset")))
                .findFirst()
                .orElseThrow();
    }

    @Test
    void aTopicThatIsNotThereIsNamedAndARateMustBePositive() {
        assertThatThrownBy(() -> KafkaDeadLetters.in("nowhere", broker.options().build())
                        .list()
                        .blockLast(LIMIT))
                .hasMessageContaining("topic 'nowhere' does not exist at");
        assertThatThrownBy(() -> letters.replay(letter -> true, 0))
                .hasMessageContaining("perSecond must be at least 1, but is 0");
    }

    @Test
    void aTopicWhoseLettersCouldComeFromAnywhereIsRefused() {
        KafkaOptions two = KafkaOptions.topics("orders", "returns")
                .bootstrapServers(broker.bootstrap())
                .groupId(broker.group())
                .build();
        assertThatThrownBy(() -> KafkaDeadLetters.in("rejected", two))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("deadLetterTopic 'rejected' does not end with '.DLT'");
    }
}
