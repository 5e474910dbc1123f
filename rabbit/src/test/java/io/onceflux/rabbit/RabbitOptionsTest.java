package io.onceflux.rabbit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.rabbitmq.client.ConnectionFactory;
import io.onceflux.InvalidSetupException;
import java.time.Duration;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Options that cannot work are refused where they are made, in the words of the property. */
class RabbitOptionsTest {

    private static void assertRefused(UnaryOperator<RabbitOptions.Builder> change, String sentence) {
        assertThatThrownBy(() -> change.apply(RabbitOptions.queue("orders")).build())
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining(sentence);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "amqp://shop:geheim#1@host:5672/shop",
                "amqp://shop#geheim@host:5672/shop",
                "amqp://shop:geheim/1@host:5672/shop",
                "amqp://shop:12/geheim@host",
                "amqp://shop:12?geheim@host",
                "amqp://shop:geheim%zz@host/shop",
                "amqp://shop:geheim:1@host/shop",
                "amqp://shop:geheim 1@host/shop",
                "amqp://a@b:geheim@host/x",
                "amqp://shop:geheim@host:port/shop"
            })
    void anAddressOfWhichAPartCannotBeToldIsRefusedWithoutThePassword(String uri) {
        assertThatThrownBy(() -> RabbitOptions.queue("orders").uri(uri))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("uri must be like amqp://user:password@host:5672/vhost")
                .hasMessageContaining("write '@', ':', '/', '#', '?' and '%' as %40, %3A, %2F, %23, %3F and %25")
                .hasMessageNotContaining("geheim")
                .hasNoCause();
    }

    @Test
    void aHostNameWithAnUnderscoreIsRefusedWithAnotherWayToNameIt() {
        assertThatThrownBy(() -> RabbitOptions.queue("orders").uri("amqp://shop:geheim@rabbit_mq:5672/shop"))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("cannot have '_': name the host with connectionFactory(...) and setHost")
                .hasMessageNotContaining("geheim");
    }

    @ParameterizedTest
    @ValueSource(strings = {"amqp://", "amqp:///shop", "amqp://shop:geheim@/shop", "host:5672", "", "amqp:host"})
    void anAddressWithoutAHostIsRefused(String uri) {
        assertThatThrownBy(() -> RabbitOptions.queue("orders").uri(uri))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("uri must be like")
                .hasMessageNotContaining("geheim");
    }

    @ParameterizedTest
    @ValueSource(strings = {"amqp://host:0", "amqp://host:70000"})
    void aPortThatIsNoneIsRefused(String uri) {
        assertRefused(options -> options.uri(uri), "the port is none from 1 to 65535");
    }

    @Test
    void anEncodedAddressIsTakenAsItIsMeant() {
        ConnectionFactory factory = RabbitOptions.queue("orders")
                .uri("amqp://sh%40p:p%23s%2Fs%3A%3F@rabbit-mq:5673/%2Fshop?heartbeat=7")
                .build()
                .connectionFactory();
        assertThat(factory.getUsername()).isEqualTo("sh@p");
        assertThat(factory.getPassword()).isEqualTo("p#s/s:?");
        assertThat(factory.getHost()).isEqualTo("rabbit-mq");
        assertThat(factory.getPort()).isEqualTo(5673);
        assertThat(factory.getVirtualHost()).isEqualTo("/shop");
        assertThat(factory.getRequestedHeartbeat()).isEqualTo(7);
    }

    @Test
    void theQueueItselfAsThePlaceForItsDeadLettersIsRefused() {
        assertRefused(
                options -> options.deadLettersTo("", "orders"), "deadLetterRoutingKey must not be the queue itself");
        RabbitOptions elsewhere =
                RabbitOptions.queue("orders").deadLettersTo("dead", "orders").build();
        assertThat(elsewhere.deadLetterExchange()).isEqualTo("dead");
    }

    @Test
    void namesThatTheProtocolCannotCarryAreRefused() {
        String longest = "x".repeat(251);
        assertThat(RabbitOptions.queue(longest).build().deadLetterRoutingKey()).hasSize(255);
        assertThatThrownBy(() -> RabbitOptions.queue(longest + "x").build())
                .hasMessageContaining("deadLetterRoutingKey must have at most 255 bytes in UTF-8, but has 256");
        assertThatThrownBy(() -> RabbitOptions.queue("ä".repeat(128)).build())
                .hasMessageContaining("queue must have at most 255 bytes in UTF-8, but has 256");
        assertRefused(
                options -> options.deadLettersTo("x".repeat(256), "dead"), "deadLetterExchange must have at most");
        assertRefused(options -> options.messageIdFromHeader("x".repeat(256)), "messageIdHeader must have at most");
        assertRefused(options -> options.deadLettersTo("", ""), "deadLetterRoutingKey must not be blank");
    }

    @Test
    void limitsBeyondAYearAreRefused() {
        Duration longest = Duration.ofDays(365);
        assertThat(RabbitOptions.queue("orders").startLimit(longest).build().startLimit())
                .isEqualTo(longest);
        Duration tooLong = longest.plusMillis(1);
        assertRefused(options -> options.startLimit(tooLong), "startLimit must be at most 365 days");
        assertRefused(options -> options.confirmLimit(tooLong), "confirmLimit must be at most 365 days");
        assertRefused(options -> options.consumerTimeout(tooLong), "consumerTimeout must be at most 365 days");
        assertRefused(options -> options.backoff(tooLong, tooLong), "minBackoff must be at most 365 days");
        assertRefused(
                options -> options.backoff(longest, Duration.ofSeconds(Long.MAX_VALUE)), "maxBackoff must be at most");
    }

    @Test
    @SuppressWarnings({"NullAway", "DataFlowIssue"})
    void whatIsNullIsRefusedByItsName() {
        assertThatThrownBy(() -> RabbitOptions.queue(null).build()).hasMessage("queue must not be null");
        assertRefused(options -> options.uri(null), "uri must not be null");
        assertRefused(options -> options.connectionFactory(null), "connectionFactory must not be null");
        assertRefused(options -> options.messageIdFromHeader(null), "messageIdHeader must not be null");
        assertRefused(options -> options.deadLettersTo(null, "dead"), "deadLetterExchange must not be null");
        assertRefused(options -> options.deadLettersTo("", null), "deadLetterRoutingKey must not be null");
        assertRefused(options -> options.declare(null), "declaration must not be null");
        assertRefused(options -> options.backoff(null, Duration.ofSeconds(1)), "minBackoff must not be null");
        assertRefused(options -> options.backoff(Duration.ofSeconds(1), null), "maxBackoff must not be null");
        assertRefused(options -> options.startLimit(null), "startLimit must not be null");
        assertRefused(options -> options.confirmLimit(null), "confirmLimit must not be null");
        assertRefused(options -> options.consumerTimeout(null), "consumerTimeout must not be null");
        assertThatThrownBy(() -> new QueueDeclaration(null, null)).hasMessage("type must not be null");
    }
}
