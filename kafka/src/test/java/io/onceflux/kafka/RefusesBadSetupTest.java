package io.onceflux.kafka;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.ConsumerBuilder;
import io.onceflux.Database;
import io.onceflux.InvalidSetupException;
import io.onceflux.Order;
import io.onceflux.Outcome;
import io.onceflux.PermanentFailure;
import io.onceflux.Retention;
import io.onceflux.postgres.ClaimTable;
import io.onceflux.postgres.DeadLetterTable;
import io.onceflux.services.KafkaService;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;

/** A wrong set-up is one clear sentence, and no message is taken; what is likely not wanted is warned of. */
class RefusesBadSetupTest {

    private final Database database = Database.create();
    private final Broker broker = Broker.create();

    @AfterEach
    void close() {
        broker.close();
        database.close();
    }

    private String failureWith(KafkaOptions options) {
        try (Running running = Running.start(options, database.pool(6), Order::apply)) {
            await().until(() -> running.error.get() != null);
            Throwable error = Objects.requireNonNull(running.error.get());
            assertThat(error).isInstanceOf(InvalidSetupException.class);
            assertThat(running.outcomes).isEmpty();
            return String.valueOf(error.getMessage());
        }
    }

    private List<String> warningsWith(KafkaOptions options) {
        return warningsWith(options, builder -> builder);
    }

    private List<String> warningsWith(KafkaOptions options, UnaryOperator<ConsumerBuilder<Order>> settings) {
        broker.publish("order-1");
        try (Running running = Running.start(options, database.pool(6), Order::apply, settings)) {
            broker.awaitMembers(1);
            broker.awaitNoBacklog();
            List<String> warnings = List.copyOf(running.listener.warnings);
            running.stop();
            return warnings;
        }
    }

    @Test
    void aMissingTopic() {
        assertThat(failureWith(broker.options().build()))
                .isEqualTo("Topic '%s' does not exist at %s. Create it.".formatted(broker.topic(), broker.bootstrap()));
    }

    @Test
    void aMissingDeadLetterTopicAndNothingIsConsumed() {
        broker.createTopic(broker.topic(), 1, Map.of());
        broker.publish("order-1");
        assertThat(failureWith(broker.options().build()))
                .contains("Topic '" + broker.deadLetterTopic() + "' does not exist", "createDeadLetterTopics()");
        assertThat(broker.lag()).isEqualTo(1);
    }

    @Test
    void aConsumerThatKeepsDeadLettersInATableNeedsNoTopicForThem() {
        broker.createTopic(broker.topic(), 1, Map.of());
        DeadLetterTable table = DeadLetterTable.deadLetters();
        database.run(table.createSql());
        broker.publish("1", "bad");
        try (Running running = Running.start(
                broker.options().build(),
                database.pool(6),
                (order, db) ->
                        order.id().equals("bad") ? Mono.error(new PermanentFailure("not this one")) : order.apply(db),
                builder -> builder.deadLetterTable(table))) {
            await().until(() -> running.outcomes.size() == 2);
            broker.awaitNoBacklog();
            assertThat(database.texts("SELECT reason FROM dead_letters")).containsExactly("not this one");
            running.stop();
        }
        database.assertAppliedOnce(1);
    }

    @Test
    void aMissingDeadLetterTopicIsCreatedOnRequestWithAsManyPartitions() {
        broker.createTopic(broker.topic(), 3, Map.of());
        warningsWith(broker.options().createDeadLetterTopics().build());
        assertThat(broker.admin()
                        .describeTopics(List.of(broker.deadLetterTopic()))
                        .allTopicNames()
                        .toCompletionStage()
                        .toCompletableFuture()
                        .join()
                        .values())
                .singleElement()
                .satisfies(topic -> assertThat(topic.partitions()).hasSize(3));
    }

    @Test
    void aBrokerThatCreatesTopicsMayCreateThePlaceForDeadLetters() {
        try (KafkaService creating = KafkaService.start(Map.of("auto.create.topics.enable", "true"));
                Broker there = Broker.on(creating)) {
            there.createTopic(there.topic(), 1, Map.of());
            there.publish(there.record("poison", "k", null));
            try (Running running = Running.start(there.options().build(), database.pool(6), Order::apply)) {
                await().until(() -> running.count(Outcome.Failed.class) == 1);
                there.awaitNoBacklog();
                running.stop();
            }
            assertThat(there.deadLetters()).hasSize(1);
        }
    }

    @Test
    void aConsumerThatTakesIdsFromASourceThatHasNone() {
        broker.create(1);
        broker.publish("order-1");
        KafkaOptions options =
                broker.quick(KafkaOptions.topic(broker.topic()), Protocol.EAGER).build();
        assertThat(failureWith(options))
                .contains("takes the ids of messages from their source", "messageIdFromHeader", "identifiedBy");
        assertThat(broker.deadLetters()).isEmpty();
    }

    @Test
    void settingsThatTheClientRefusesAreNamedAndNoSecretIsRepeated() {
        broker.create(1);
        assertThat(failureWith(
                        broker.options().property("auto.offset.reset", "middle").build()))
                .contains("auto.offset.reset", "middle");
        assertThat(failureWith(
                        broker.options().property("group.protocol", "quantum").build()))
                .contains("group.protocol");
        assertThat(failureWith(broker.options()
                        .property("security.protocol", "SASL_PLAINTEXT")
                        .property("sasl.mechanism", "PLAIN")
                        .property("sasl.jaas.config", "PlainLoginModule password=\"s3cret\"")
                        .build()))
                .contains("The Kafka client")
                .doesNotContain("s3cret");
    }

    @Test
    void noCommittedOffsetWhereNoneIsToBeAssumed() {
        broker.create(1);
        assertThat(failureWith(
                        broker.options().property("auto.offset.reset", "none").build()))
                .contains("no committed offset and auto.offset.reset is none");
    }

    @Test
    void aBrokerThatCannotBeReachedIsWaitedForUpToTheStartLimit() throws Exception {
        int free;
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            free = socket.getLocalPort();
        }
        assertThat(failureWith(KafkaOptions.topic("orders")
                        .bootstrapServers("127.0.0.1:" + free)
                        .groupId("g")
                        .messageIdFromHeader("id")
                        .startLimit(Duration.ofSeconds(1))
                        .build()))
                .contains("could not be reached for 1 s", "check bootstrap.servers", "127.0.0.1:" + free);
    }

    @Test
    void anotherMemberWithAnAssignorThatHasNothingInCommon() {
        broker.create(1);
        try (Running there = Running.start(broker.options(Protocol.EAGER).build(), database.pool(6), Order::apply)) {
            broker.awaitMembers(1);
            assertThat(failureWith(broker.options(Protocol.COOPERATIVE).build()))
                    .contains("partition.assignment.strategy", "nothing in common");
            there.stop();
        }
    }

    @Test
    void whatTheTopicDeletesOrReplacesIsWarnedOf() {
        broker.create(1, Map.of("retention.ms", "3600000", "retention.bytes", "1000000"));
        assertThat(warningsWith(broker.options().build()))
                .anyMatch(warning -> warning.contains("keeps messages for PT1H only"))
                .anyMatch(warning -> warning.contains("keeps 1000000 bytes a partition"));
    }

    @Test
    void aTopicThatKeepsMessagesForLongerThanTheirClaimsAreKeptIsWarnedOf() {
        broker.create(1, Map.of("retention.ms", "518400000", "segment.ms", "86400000"));
        KafkaOptions options = broker.options().build();
        String sentence = "keeps messages for up to PT168H, but claims are kept for ";
        assertThat(warningsWith(options, consumer -> consumer.retention(claimsKeptFor(6))))
                .anyMatch(warning -> warning.contains(sentence + "PT144H"));
        assertThat(warningsWith(options, consumer -> consumer.retention(claimsKeptFor(7))))
                .noneMatch(warning -> warning.contains(sentence));
    }

    private static Retention claimsKeptFor(int days) {
        return Retention.of(ClaimTable.processedMessages(), Duration.ofDays(days));
    }

    @Test
    void anIdThatNobodyLooksAtIsWarnedOf() {
        broker.create(1);
        String sentence = "where a record has its id (HEADER), but consumer 'loyalty' has identifiedBy(...)";
        assertThat(warningsWith(broker.options().build(), consumer -> consumer.identifiedBy(Order::id)))
                .anyMatch(warning -> warning.contains(sentence));
        assertThat(warningsWith(broker.options().build())).noneMatch(warning -> warning.contains(sentence));
    }

    @Test
    void aCompactedTopicIsWarnedOf() {
        broker.create(1, Map.of("cleanup.policy", "compact"));
        assertThat(warningsWith(broker.options().build())).anyMatch(warning -> warning.contains("is compacted"));
    }

    @Test
    void anOrdinaryTopicIsNotWarnedOf() {
        broker.create(1);
        assertThat(warningsWith(broker.options().build()).stream().filter(warning -> warning.contains("opic")))
                .isEmpty();
    }

    @Test
    void beginningAtTheEndIsWarnedOfAndHappensOnceOnly() {
        broker.create(1);
        KafkaOptions latest =
                broker.options().property("auto.offset.reset", "latest").build();
        assertThat(warningsWith(latest)).anyMatch(warning -> warning.contains("auto.offset.reset is latest"));

        broker.publish("while nobody was there");
        try (Running running = Running.start(latest, database.pool(6), Order::apply)) {
            await("the place where it began was committed, although nothing had come")
                    .until(() -> database.effects() == 1);
            running.stop();
        }
    }

    @Test
    void messagesThatWereDeletedBeforeTheyWereHandledAreWarnedOf() throws Exception {
        broker.create(1);
        broker.publish(Broker.ids("order-", 10));
        TopicPartition partition = new TopicPartition(broker.topic(), 0);
        broker.admin()
                .alterConsumerGroupOffsets(broker.group(), Map.of(partition, new OffsetAndMetadata(2)))
                .all()
                .get();
        broker.admin()
                .deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(7)))
                .all()
                .get();
        assertThat(warningsWith(broker.options().build()))
                .anyMatch(warning -> warning.contains("offsets 2 to 6 were deleted by the topic's retention"));
        broker.awaitNoBacklog();
    }

    /** The client begins anew by itself, and says nothing. */
    @Test
    void aGroupThatIsBeyondTheEndOfTheLogIsWarnedOf() throws Exception {
        broker.create(1);
        broker.publish(Broker.ids("order-", 10));
        broker.admin()
                .alterConsumerGroupOffsets(
                        broker.group(), Map.of(new TopicPartition(broker.topic(), 0), new OffsetAndMetadata(4_711)))
                .all()
                .get();
        assertThat(warningsWith(broker.options().build()))
                .anyMatch(warning -> warning.contains("is at offset 4711, but the log ends at 11")
                        && warning.contains("comes again"));
        broker.awaitNoBacklog();
    }

    /** Topics whose names start with the test's, looked for twice a second. */
    private KafkaOptions.Builder startingWithItsName() {
        return broker.quick(
                        KafkaOptions.topicsMatching(Pattern.compile(Pattern.quote(broker.topic()) + ".*")),
                        Protocol.COOPERATIVE)
                .messageIdFromHeader(Broker.ID)
                .property("metadata.max.age.ms", 500);
    }

    @Test
    void aPatternThatMatchesNothingYetIsWarnedOfAndTakesTopicsAsTheyCome() {
        KafkaOptions options = startingWithItsName().build();
        try (Running running = Running.start(options, database.pool(6), Order::apply)) {
            await().until(() ->
                    running.listener.warnings.stream().anyMatch(warning -> warning.contains("no topic at")));
            broker.create(2);
            broker.publish(Broker.ids("order-", 10));
            broker.publish(broker.record("poison", "k", null));
            await().until(() -> database.effects() == 10 && running.count(Outcome.Failed.class) == 1);
            broker.awaitNoBacklog();
            assertThat(broker.deadLetters()).hasSize(1);
            running.stop();
        }
        database.assertAppliedOnce(10);
    }

    @Test
    void aTopicThatComesLaterGetsItsDeadLetterTopic() {
        KafkaOptions pattern = startingWithItsName().createDeadLetterTopics().build();
        try (Running running = Running.start(pattern, database.pool(6), Order::apply)) {
            await().until(() ->
                    running.listener.warnings.stream().anyMatch(warning -> warning.contains("no topic at")));
            broker.createTopic(broker.topic(), 2, Map.of());
            broker.publish("order-1");
            broker.publish(broker.record("poison", "k", null));
            await().until(() -> running.outcomes.size() == 2);
            broker.awaitNoBacklog();
            assertThat(broker.deadLetters()).hasSize(1);
            running.stop();
        }
    }

    @Test
    void aTopicThatComesLaterWithoutADeadLetterTopicIsWarnedOf() {
        KafkaOptions pattern = startingWithItsName().build();
        try (Running running = Running.start(pattern, database.pool(6), Order::apply)) {
            await().until(() ->
                    running.listener.warnings.stream().anyMatch(warning -> warning.contains("no topic at")));
            broker.createTopic(broker.topic(), 1, Map.of());
            broker.publish("order-1");
            await().until(() -> database.effects() == 1);
            await().until(() -> running.listener.warnings.stream()
                    .anyMatch(warning -> warning.contains("Topic '" + broker.deadLetterTopic() + "' does not exist")));
            running.stop();
        }
    }

    @Test
    void aDeadLetterTopicThatLosesLettersIsWarnedOf() {
        broker.createTopic(broker.topic(), 1, Map.of());
        broker.createTopic(
                broker.deadLetterTopic(), 1, Map.of("cleanup.policy", "compact,delete", "retention.ms", "60000"));
        assertThat(warningsWith(broker.options().build()))
                .anyMatch(warning ->
                        warning.contains("dead-letter topic '%s' is compacted".formatted(broker.deadLetterTopic())))
                .anyMatch(warning -> warning.contains(
                        "dead-letter topic '%s' keeps messages for PT1M only".formatted(broker.deadLetterTopic())));
    }

    @Test
    void offsetsThatHaveExpiredAreWarnedOf() throws Exception {
        broker.create(2);
        broker.publish(Broker.ids("order-", 10));
        String sentence = "group '%s' has no offset for partitions".formatted(broker.group());
        assertThat(warningsWith(broker.options().build())).noneMatch(warning -> warning.contains(sentence));
        await().until(() -> broker.members().isEmpty());
        broker.admin().deleteConsumerGroups(List.of(broker.group())).all().get();
        assertThat(warningsWith(broker.options().build()))
                .anyMatch(warning -> warning.contains(sentence + " [0, 1]")
                        && warning.contains("consumer 'loyalty' has claims already")
                        && warning.contains("offsets.retention.minutes"));
        await().until(() -> broker.members().isEmpty());
        broker.admin()
                .deleteConsumerGroupOffsets(broker.group(), Set.of(new TopicPartition(broker.topic(), 1)))
                .all()
                .get();
        assertThat(warningsWith(
                        broker.options().property("auto.offset.reset", "latest").build()))
                .anyMatch(warning -> warning.contains(sentence + " [1]")
                        && warning.contains("it has for others")
                        && warning.contains("is passed over"));
    }
}
