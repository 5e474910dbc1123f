package io.onceflux.services;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.awaitility.Awaitility.await;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

class KafkaServiceTest {
    private static final Map<String, String> LOCAL = Map.of("ONCEFLUX_SERVICES", "local");
    private static KafkaService kafka;

    @BeforeAll
    static void start() {
        kafka = KafkaService.start(LOCAL, () -> false, Map.of("log.retention.hours", "7"));
    }

    @AfterAll
    static void close() {
        kafka.close();
    }

    @Test
    void itSaysWhereItIsAndThatIsLoopback() {
        assertThat(kafka).hasToString("Kafka: local on " + kafka.bootstrap());
        assertThat(kafka.bootstrap()).startsWith("127.0.0.1:");
    }

    @Test
    void settingsReachTheBroker() throws Exception {
        ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, "1");
        try (Admin admin = admin()) {
            assertThat(admin.describeConfigs(List.of(broker)).all().get())
                    .extractingByKey(broker)
                    .extracting(config -> config.get("log.retention.hours").value())
                    .isEqualTo("7");
        }
    }

    @Test
    void aBrokerThatWasKilledComesBackWithItsRecords() throws Exception {
        publish("killed", "kept");
        kafka.kill();
        assertThat(KafkaAddress.answers(kafka.bootstrap())).isFalse();
        kafka.restart();
        awaitRecords("killed", 1);
    }

    @Test
    void aBrokerThatWasStoppedComesBackWithItsRecords() throws Exception {
        publish("stopped", "kept");
        kafka.stop();
        kafka.restart();
        awaitRecords("stopped", 1);
    }

    @Test
    void aFrozenBrokerAnswersNobodyUntilItThaws() {
        kafka.freeze();
        assertThat(KafkaAddress.answers(kafka.bootstrap())).isFalse();
        kafka.thaw();
        assertThat(KafkaAddress.answers(kafka.bootstrap())).isTrue();
    }

    @Test
    void aBrokerGivenByAddressIsUsedAndLeftRunning() {
        KafkaService given =
                KafkaService.start(Map.of("ONCEFLUX_KAFKA_BOOTSTRAP", kafka.bootstrap()), () -> true, Map.of());
        assertThat(given).hasToString("Kafka: of ONCEFLUX_KAFKA_BOOTSTRAP on " + kafka.bootstrap());
        assertThatExceptionOfType(UnsupportedOperationException.class).isThrownBy(given::kill);
        given.close();
        assertThat(KafkaAddress.answers(kafka.bootstrap())).isTrue();
    }

    @Test
    void anAddressWhereNothingAnswersIsAFailureAndNothingElseIsTried() {
        String address = "127.0.0.1:" + FreePorts.next();
        assertThatIllegalStateException()
                .isThrownBy(() -> KafkaService.start(
                        Map.of("ONCEFLUX_KAFKA_BOOTSTRAP", address),
                        () -> {
                            throw new AssertionError("Docker was tried");
                        },
                        Map.of()))
                .withMessage("ONCEFLUX_KAFKA_BOOTSTRAP is set, but no Kafka answers at " + address
                        + ": start it, correct the address or unset it.");
    }

    private static Admin admin() {
        return Admin.create(Map.of("bootstrap.servers", kafka.bootstrap()));
    }

    private static void publish(String topic, String value) throws Exception {
        try (Admin admin = admin()) {
            admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
        }
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", kafka.bootstrap(), "acks", "all"),
                new StringSerializer(),
                new StringSerializer())) {
            producer.send(new ProducerRecord<>(topic, value)).get(20, TimeUnit.SECONDS);
        }
    }

    private static void awaitRecords(String topic, long count) {
        TopicPartition partition = new TopicPartition(topic, 0);
        try (Admin admin = admin()) {
            await().atMost(Duration.ofSeconds(20))
                    .ignoreExceptions()
                    .until(() ->
                            admin.listOffsets(Map.of(partition, org.apache.kafka.clients.admin.OffsetSpec.latest()))
                                            .partitionResult(partition)
                                            .get(5, TimeUnit.SECONDS)
                                            .offset()
                                    == count);
        }
    }
}
