package io.onceflux.kafka;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.onceflux.InvalidSetupException;
import java.time.Duration;
import java.util.List;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.junit.jupiter.api.Test;

class KafkaOptionsTest {

    private static KafkaOptions.Builder good() {
        return KafkaOptions.topic("orders").bootstrapServers("localhost:9092").groupId("loyalty");
    }

    private static void refuses(UnaryOperator<KafkaOptions.Builder> change, String... words) {
        assertThatThrownBy(() -> change.apply(good()).build())
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContainingAll(words);
    }

    @Test
    void whatIsMissingIsNamed() {
        assertThatThrownBy(() -> KafkaOptions.topic("orders")
                        .bootstrapServers("localhost:9092")
                        .build())
                .hasMessageStartingWith("group.id is missing");
        assertThatThrownBy(() -> KafkaOptions.topic("orders").groupId("loyalty").build())
                .hasMessageStartingWith("bootstrap.servers is missing");
        refuses(options -> options.groupId(" "), "group.id is missing");
    }

    @Test
    void whatWouldBreakThePromiseIsRefused() {
        refuses(options -> options.property("enable.auto.commit", "true"), "enable.auto.commit must not be true");
        refuses(options -> options.property("enable.auto.commit", true), "enable.auto.commit must not be true");
        refuses(
                options -> options.property("value.deserializer", StringDeserializer.class),
                "value.deserializer must not be set",
                "Delivery.decoding");
        refuses(
                options -> options.property("key.deserializer", StringDeserializer.class.getName()),
                "key.deserializer must not be set");
        refuses(options -> options.deadLetterProperty("acks", "1"), "acks of the producer of dead letters must be all");
        refuses(options -> options.deadLetterProperty("enable.idempotence", "false"), "enable.idempotence");
        refuses(options -> options.deadLetterProperty("transactional.id", "t"), "transactional.id");
        assertThat(good().property("enable.auto.commit", false)
                        .property("value.deserializer", ByteArrayDeserializer.class.getName())
                        .deadLetterProperty("acks", "-1")
                        .build())
                .isNotNull();
    }

    @Test
    void theDrainLimitFollowsThePollInterval() {
        KafkaOptions.Builder options =
                KafkaOptions.topic("orders").bootstrapServers("a:1").groupId("g");
        assertThat(options.build().drainLimit()).isEqualTo(Duration.ofSeconds(10));
        assertThat(options.property("max.poll.interval.ms", 10_000).build().drainLimit())
                .isEqualTo(Duration.ofSeconds(5));
    }

    @Test
    void namesAndLimitsAreChecked() {
        assertThatThrownBy(() -> KafkaOptions.topic("my orders")
                        .bootstrapServers("a:1")
                        .groupId("g")
                        .build())
                .hasMessageContaining("topic must be at most 249 letters", "'my orders'");
        assertThatThrownBy(() -> KafkaOptions.topic("x".repeat(248))
                        .bootstrapServers("a:1")
                        .groupId("g")
                        .build())
                .hasMessageContaining("the dead-letter topic of");
        assertThatThrownBy(() -> KafkaOptions.topics("a", "a.DLT")
                        .bootstrapServers("a:1")
                        .groupId("g")
                        .build())
                .hasMessageContaining("would be consumed again");
        refuses(options -> options.deadLetterSuffix(""), "deadLetterSuffix must not be blank");
        refuses(options -> options.commitInterval(Duration.ZERO), "commitInterval must be at least 1 ms");
        refuses(options -> options.drainLimit(Duration.ofDays(400)), "drainLimit must be at most 365 days");
        refuses(
                options -> options.drainLimit(Duration.ofMinutes(5)),
                "drainLimit (300000 ms) must be less than max.poll.interval.ms (300000 ms)");
        refuses(
                options -> options.property("max.poll.interval.ms", 10_000).drainLimit(Duration.ofSeconds(10)),
                "drainLimit (10000 ms) must be less than max.poll.interval.ms (10000 ms)");
        refuses(options -> options.property("max.poll.interval.ms", "soon"), "max.poll.interval.ms must be a number");
        refuses(options -> options.maxDeferredCommits(0), "maxDeferredCommits must be at least 1");
        refuses(options -> options.messageIdFromHeader(" "), "messageIdHeader must not be blank");
        refuses(
                options -> options.backoff(Duration.ofSeconds(2), Duration.ofSeconds(1)),
                "minBackoff (PT2S) must not be longer than maxBackoff (PT1S)");
    }

    @Test
    void theClientsSettingsPassThroughAndDefaultsGiveWay() {
        KafkaOptions options = good().property("security.protocol", "SASL_SSL")
                .property("sasl.mechanism", "SCRAM-SHA-512")
                .property("isolation.level", "read_uncommitted")
                .property("my.plugin.setting", "x")
                .property("fetch.max.bytes", 1_000)
                .deadLetterProperty("compression.type", "zstd")
                .build();
        assertThat(ClientSettings.consumer(options, "loyalty", 64))
                .containsEntry("security.protocol", "SASL_SSL")
                .containsEntry("isolation.level", "read_uncommitted")
                .containsEntry("auto.offset.reset", "earliest")
                .containsEntry("max.poll.records", 64)
                .containsEntry("enable.auto.commit", false)
                .containsEntry("my.plugin.setting", "x");
        assertThat(ClientSettings.admin(options))
                .containsEntry("sasl.mechanism", "SCRAM-SHA-512")
                .containsEntry("my.plugin.setting", "x")
                .doesNotContainKeys("isolation.level", "group.id", "fetch.max.bytes");
        assertThat(ClientSettings.deadLetterProducer(options))
                .containsEntry("security.protocol", "SASL_SSL")
                .containsEntry("acks", "all")
                .containsEntry("compression.type", "zstd")
                .doesNotContainKeys("isolation.level", "group.id", "fetch.max.bytes");
    }

    @Test
    void aPatternNeverMatchesDeadLetterTopics() {
        KafkaOptions options = KafkaOptions.topicsMatching(Pattern.compile("orders.*|ORDERS", Pattern.CASE_INSENSITIVE))
                .bootstrapServers("a:1")
                .groupId("g")
                .build();
        Pattern pattern = options.patternWithoutDeadLetters();
        assertThat(List.of("orders", "orders.eu", "Orders", "orders.DLT.x")).allMatch(pattern.asMatchPredicate());
        assertThat(List.of("orders.DLT", "orders.eu.DLT", "payments")).noneMatch(pattern.asMatchPredicate());
    }

    @Test
    void nothingThatIsToldHasASecret() {
        KafkaOptions options = good().property(
                        "sasl.jaas.config", "org...PlainLoginModule required username=\"u\" password=\"s3cret\";")
                .property("ssl.key.password", "k3y")
                .build();
        assertThat(options.toString() + options.source() + options.broker()).doesNotContain("s3cret", "k3y", "jaas");
        assertThat(ClientSettings.tellsASecret(options, "Login failed for s3cret"))
                .isTrue();
        assertThat(ClientSettings.tellsASecret(options, "cannot open with k3y")).isTrue();
        assertThat(ClientSettings.tellsASecret(options, "Invalid value x for configuration acks"))
                .isFalse();
        assertThat(options).hasToString("KafkaOptions[topic 'orders' for group 'loyalty' at localhost:9092]");
    }
}
