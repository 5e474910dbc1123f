package io.onceflux.kafka;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.onceflux.Database;
import io.onceflux.DeadLetter;
import io.onceflux.DeadLetters;
import io.onceflux.Health;
import io.onceflux.InvalidSetupException;
import io.onceflux.Order;
import io.onceflux.Outcome;
import io.onceflux.services.ForkedJvm;
import io.onceflux.services.KafkaService;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import reactor.core.publisher.Mono;

/** A broker that asks for a password and for rights: what a user needs, what it is told, and that no password is told to anybody. */
class UserRightsTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final int PORT = freePort();
    private static final KafkaService SERVICE = KafkaService.start(Map.of(
            "listeners",
                    "PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:" + PORT + ",CONTROLLER://{controller}",
            "advertised.listeners", "PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:" + PORT,
            "listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "sasl.enabled.mechanisms", "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config",
                    "org.apache.kafka.common.security.plain.PlainLoginModule required user_alice=\""
                            + TellingService.SECRET + "\";",
            "authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users", "User:ANONYMOUS"));

    private final Database database = Database.create();
    private final Broker broker = Broker.on(SERVICE);

    private static int freePort() {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @AfterAll
    static void stop() {
        SERVICE.close();
    }

    @AfterEach
    void close() {
        broker.close();
        database.close();
    }

    private KafkaOptions.Builder as(String password) {
        return broker.options()
                .bootstrapServers("127.0.0.1:" + PORT)
                .properties(TellingService.login("alice", password));
    }

    private void grant(ResourceType type, String name, AclOperation... operations) throws Exception {
        List<AclBinding> bindings = new ArrayList<>();
        for (AclOperation operation : operations) {
            bindings.add(new AclBinding(
                    new ResourcePattern(type, name, PatternType.LITERAL),
                    new AccessControlEntry("User:alice", "*", operation, AclPermissionType.ALLOW)));
        }
        broker.admin().createAcls(bindings).all().get();
    }

    private void revoke(ResourceType type, String name, AclOperation operation) throws Exception {
        broker.admin()
                .deleteAcls(List.of(new AclBindingFilter(
                        new ResourcePatternFilter(type, name, PatternType.LITERAL),
                        new AccessControlEntryFilter("User:alice", "*", operation, AclPermissionType.ALLOW))))
                .all()
                .get();
    }

    private String failureWith(KafkaOptions options) {
        try (Running running = Running.start(options, database.pool(6), Order::apply)) {
            await().until(() -> running.error.get() != null);
            Throwable error = Objects.requireNonNull(running.error.get());
            assertThat(error).isInstanceOf(InvalidSetupException.class);
            return String.valueOf(error.getMessage());
        }
    }

    @Test
    void aWrongPasswordIsRefusedAndNotRepeated() {
        broker.create(1);
        assertThat(failureWith(as("wr0ng").build()))
                .contains("refuses the login", "sasl.*", "127.0.0.1:" + PORT)
                .doesNotContain("wr0ng");
    }

    @Test
    void eachRightThatIsMissingIsNamedAndWithAllOfThemItWorks() throws Exception {
        broker.create(1);
        broker.publish(broker.record("poison", "k", null));
        broker.publish("order-1");
        KafkaOptions options = as(TellingService.SECRET).build();

        assertThat(failureWith(options)).contains("Topic '" + broker.topic() + "'", "grant DESCRIBE and READ");
        grant(ResourceType.TOPIC, broker.topic(), AclOperation.DESCRIBE);
        assertThat(failureWith(options)).contains("no right to read topics [" + broker.topic());
        grant(ResourceType.TOPIC, broker.topic(), AclOperation.READ);
        assertThat(failureWith(options)).contains("Topic '" + broker.deadLetterTopic() + "'", "for dead letters WRITE");
        grant(ResourceType.TOPIC, broker.deadLetterTopic(), AclOperation.DESCRIBE);
        assertThat(failureWith(options)).contains("no right to write to topic '" + broker.deadLetterTopic());
        grant(ResourceType.TOPIC, broker.deadLetterTopic(), AclOperation.WRITE);
        assertThat(failureWith(options)).contains("no right to group '" + broker.group(), "grant READ on the group");
        grant(ResourceType.GROUP, broker.group(), AclOperation.READ);

        try (Running running = Running.start(options, database.pool(6), Order::apply)) {
            await().until(() -> running.count(Outcome.Applied.class) == 1 && running.count(Outcome.Failed.class) == 1);
            broker.awaitNoBacklog();
            running.stop();
        }
        assertThat(broker.deadLetters()).hasSize(1);
        database.assertAppliedOnce(1);
    }

    /** What is granted is all that it takes; no group, because nobody consumes. */
    @ParameterizedTest
    @CsvSource({
        "READ, .DLT, no right to read topics",
        "WRITE, .DLT, no right to write to topic",
        "WRITE, '', or for dead letters WRITE",
    })
    void whoReplaysIsToldTheRightThatIsMissingAndUntilItIsGrantedNothingIsGivenBack(
            AclOperation operation, String suffix, String told) throws Exception {
        broker.create(1);
        broker.publishAll(List.of(broker.record("poison-1", "k", null), broker.record("poison-2", "k", null)));
        try (Running running = Running.start(broker.options().build(), database.pool(6), Order::apply)) {
            broker.awaitDeadLetters(2);
            running.stop();
        }
        DeadLetters letters = KafkaDeadLetters.of(as(TellingService.SECRET).build());
        grantReplays();
        Right missing = new Right(operation, broker.topic() + suffix);
        for (Right right : List.of(
                new Right(AclOperation.READ, broker.deadLetterTopic()),
                new Right(AclOperation.WRITE, broker.deadLetterTopic()),
                new Right(AclOperation.WRITE, broker.topic()))) {
            if (!right.equals(missing)) {
                grant(ResourceType.TOPIC, right.topic(), right.operation());
            }
        }

        await().untilAsserted(() -> assertThatThrownBy(() -> replayAll(letters))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining(told)
                .hasMessageContaining(missing.topic()));
        assertThat(broker.read(broker.topic())).hasSize(2);
        assertThat(broker.deadLetters()).hasSize(2);

        grant(ResourceType.TOPIC, missing.topic(), missing.operation());
        await().ignoreExceptionsInstanceOf(InvalidSetupException.class)
                .untilAsserted(() -> assertThat(replayAll(letters)).hasSize(2));
        assertThat(broker.read(broker.topic())).hasSize(4);
        assertThat(letters.list().collectList().block(LIMIT)).isEmpty();
    }

    private void grantReplays() throws Exception {
        String id = "onceflux-replay-" + broker.deadLetterTopic();
        grant(ResourceType.TRANSACTIONAL_ID, id, AclOperation.WRITE, AclOperation.DESCRIBE);
    }

    @Test
    void whoReplaysIsToldOfTheTransactionalId() throws Exception {
        broker.create(1);
        broker.publishAll(List.of(broker.record("poison-1", "k", null)));
        try (Running running = Running.start(broker.options().build(), database.pool(6), Order::apply)) {
            broker.awaitDeadLetters(1);
            running.stop();
        }
        DeadLetters letters = KafkaDeadLetters.of(as(TellingService.SECRET).build());
        grant(ResourceType.TOPIC, broker.deadLetterTopic(), AclOperation.READ, AclOperation.WRITE);
        grant(ResourceType.TOPIC, broker.topic(), AclOperation.WRITE);

        await().untilAsserted(() -> assertThatThrownBy(() -> replayAll(letters))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("transactional id 'onceflux-replay-" + broker.deadLetterTopic()));
        assertThat(broker.read(broker.topic())).hasSize(1);
        grantReplays();
        await().ignoreExceptionsInstanceOf(InvalidSetupException.class)
                .untilAsserted(() -> assertThat(replayAll(letters)).hasSize(1));
    }

    private record Right(AclOperation operation, String topic) {}

    private static List<DeadLetter> replayAll(DeadLetters letters) {
        return Objects.requireNonNull(
                letters.replay(letter -> true, 100).collectList().block(LIMIT));
    }

    /** The fetch is refused, or a commit; each ends the client, and one that is made anew goes on where it was. */
    @ParameterizedTest
    @EnumSource(
            value = ResourceType.class,
            names = {"TOPIC", "GROUP"})
    void aRightThatIsTakenAwayUnderLoadAndGivenBackLeavesEachMessageAppliedOnce(ResourceType type) throws Exception {
        broker.create(2);
        String name = type == ResourceType.TOPIC ? broker.topic() : broker.group();
        grant(ResourceType.TOPIC, broker.topic(), AclOperation.DESCRIBE, AclOperation.READ);
        grant(ResourceType.TOPIC, broker.deadLetterTopic(), AclOperation.DESCRIBE, AclOperation.WRITE);
        grant(ResourceType.GROUP, broker.group(), AclOperation.READ);
        broker.publish(Broker.ids("order-", 500));
        try (Running running = Running.start(
                as(TellingService.SECRET).build(),
                database.pool(6),
                (order, db) -> Mono.delay(Duration.ofMillis(5)).then(order.apply(db)))) {
            for (int time = 1; time <= 2; time++) {
                long before = database.effects();
                await().until(() -> database.effects() > before);
                int told = running.listener.lost.size();
                revoke(type, name, AclOperation.READ);
                await().until(() -> running.listener.lost.size() > told);
                assertThat(running.consumer.health().status()).isNotEqualTo(Health.Status.UP);
                broker.publish(Broker.ids("time-" + time + "-", 100));
                grant(type, name, AclOperation.READ);
            }
            await().until(() -> database.effects() == 700);
            broker.awaitNoBacklog();
            await().until(() -> running.consumer.health().status() == Health.Status.UP);
            assertThat(running.count(Outcome.Failed.class)).isZero();
            running.stop();
        }
        database.assertAppliedOnce(700);
    }

    @Test
    void theRightToCreateTheDeadLetterTopicIsAskedForInASentence() throws Exception {
        broker.createTopic(broker.topic(), 1, Map.of());
        grant(ResourceType.TOPIC, broker.topic(), AclOperation.READ);
        grant(ResourceType.GROUP, broker.group(), AclOperation.READ);
        grant(ResourceType.TOPIC, broker.deadLetterTopic(), AclOperation.DESCRIBE, AclOperation.WRITE);
        assertThat(failureWith(
                        as(TellingService.SECRET).createDeadLetterTopics().build()))
                .contains("no right to create topic '" + broker.deadLetterTopic(), "grant CREATE");
        assertThat(failureWith(as(TellingService.SECRET).build()))
                .contains("Topic '" + broker.deadLetterTopic() + "' does not exist");
    }

    @Test
    void noPasswordIsLoggedOrToldWhateverFails() {
        broker.create(1);
        try (ForkedJvm service = ForkedJvm.start(
                TellingService.class,
                Map.of(
                        "org.slf4j.simpleLogger.logFile", "System.out",
                        "org.slf4j.simpleLogger.defaultLogLevel", "info",
                        "org.slf4j.simpleLogger.log.org.apache.kafka", "info",
                        "org.slf4j.simpleLogger.log.io.onceflux", "trace"),
                "127.0.0.1:" + PORT,
                broker.topic(),
                database.r2dbcUrl())) {
            service.awaitLine(line -> line.equals("END"), Duration.ofMinutes(2));
            List<String> told = service.lines();

            assertThat(told)
                    .as("what is to be seen: the client's settings and the failures")
                    .anyMatch(line -> line.contains("sasl.jaas.config = [hidden]"))
                    .anyMatch(line -> line.contains("refuses the login"))
                    .anyMatch(line -> line.contains("could not be reached"))
                    .anyMatch(line -> line.contains("The Kafka client"));
            assertThat(told).noneMatch(line -> line.contains(TellingService.SECRET));
        }
    }
}
