package io.onceflux.services;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.awaitility.Awaitility.await;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.GetResponse;
import com.rabbitmq.client.MessageProperties;
import java.io.IOException;
import java.net.URI;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

class RabbitServiceTest {
    private static RabbitService rabbit;

    @BeforeAll
    static void start() {
        rabbit = RabbitService.start(
                withoutAddress(), ContainerServer::dockerAnswers, Map.of("consumer_timeout", "123456"));
    }

    @AfterAll
    static void close() {
        rabbit.close();
    }

    @Test
    void itSaysWhereItIs() {
        assertThat(rabbit.toString())
                .matches("RabbitMQ: (local|in Docker) .* on " + rabbit.host() + ":" + rabbit.port());
    }

    @Test
    void configurationLinesReachTheNode() {
        assertThat(rabbit.ctl("eval", "application:get_env(rabbit, consumer_timeout).")
                        .strip())
                .isEqualTo("{ok,123456}");
    }

    @Test
    void aNodeThatWasKilledComesBackWithItsDurableMessages() throws Exception {
        publish("killed", "kept");

        rabbit.ctl("eval", "mnesia:dump_log()."); // The broker writes new queues to disk some seconds later.
        rabbit.kill();
        assertThat(AmqpAddress.answers(URI.create(rabbit.uri()))).isFalse();
        rabbit.restart();

        awaitMessage("killed", "kept");
    }

    @Test
    void aNodeThatWasStoppedComesBackWithItsDurableMessages() throws Exception {
        publish("stopped", "kept");

        rabbit.stop();
        rabbit.restart();

        awaitMessage("stopped", "kept");
    }

    @Test
    void aFrozenNodeAnswersNobodyUntilItThaws() {
        rabbit.freeze();
        assertThat(AmqpAddress.answers(URI.create(rabbit.uri()))).isFalse();
        rabbit.thaw();
        assertThat(AmqpAddress.answers(URI.create(rabbit.uri()))).isTrue();
    }

    @Test
    void aCommandThatFailsSaysWhy() {
        assertThatIllegalStateException()
                .isThrownBy(() -> rabbit.ctl("no_such_command"))
                .withMessageContaining("no_such_command");
    }

    @Test
    void aServerGivenByAddressIsUsedAndLeftRunning() {
        RabbitService given = RabbitService.start(Map.of("ONCEFLUX_RABBIT_URI", rabbit.uri()), () -> true, Map.of());
        assertThat(given).hasToString("RabbitMQ: of ONCEFLUX_RABBIT_URI on " + rabbit.host() + ":" + rabbit.port());
        assertThatExceptionOfType(UnsupportedOperationException.class).isThrownBy(given::kill);
        assertThatExceptionOfType(UnsupportedOperationException.class).isThrownBy(() -> given.ctl("status"));

        given.close();

        assertThat(AmqpAddress.answers(URI.create(rabbit.uri()))).isTrue();
    }

    @Test
    void anAddressWhereNothingAnswersIsAFailureAndNothingElseIsTried() {
        String uri = "amqp://me:s3cret@127.0.0.1:" + FreePorts.next();
        assertThatIllegalStateException()
                .isThrownBy(() -> RabbitService.startIfPresent(
                        Map.of("ONCEFLUX_RABBIT_URI", uri),
                        () -> {
                            throw new AssertionError("Docker was tried");
                        },
                        Map.of()))
                .withMessageMatching("ONCEFLUX_RABBIT_URI is set, but no RabbitMQ answers at 127.0.0.1:\\d+: .*");
    }

    @Test
    void aUriThatIsNoneIsRefusedWithoutQuotingIt() {
        assertThatIllegalStateException()
                .isThrownBy(() -> RabbitService.start(
                        Map.of("ONCEFLUX_RABBIT_URI", "http://me:s3cret@127.0.0.1"), () -> false, Map.of()))
                .withMessage("ONCEFLUX_RABBIT_URI is not of the form amqp://user:password@host:5672/vhost.")
                .withNoCause();
    }

    /** These tests kill their server, so it must be one of ours: by Docker or local, as the environment wants. */
    private static Map<String, String> withoutAddress() {
        Map<String, String> env = new HashMap<>(System.getenv());
        env.remove("ONCEFLUX_RABBIT_URI");
        env.remove("ONCEFLUX_SERVICES", "env");
        return env;
    }

    private static void publish(String queue, String text) throws Exception {
        try (Connection connection = connect();
                Channel channel = connection.createChannel()) {
            channel.queueDeclare(queue, true, false, false, Map.of());
            channel.confirmSelect();
            channel.basicPublish("", queue, MessageProperties.PERSISTENT_BASIC, text.getBytes(UTF_8));
            channel.waitForConfirmsOrDie(10_000);
        }
    }

    /** A node that answers may still be recovering its queues; it then refuses to read from one, for a moment. */
    private static void awaitMessage(String queue, String text) {
        await().atMost(Duration.ofSeconds(30))
                .ignoreExceptionsInstanceOf(IOException.class)
                .untilAsserted(() -> assertThat(get(queue)).isEqualTo(text));
    }

    private static String get(String queue) throws Exception {
        try (Connection connection = connect();
                Channel channel = connection.createChannel()) {
            GetResponse response = channel.basicGet(queue, true);
            return response == null ? "nothing" : new String(response.getBody(), UTF_8);
        }
    }

    private static Connection connect() throws Exception {
        ConnectionFactory factory = new ConnectionFactory();
        factory.setUri(rabbit.uri());
        return factory.newConnection("test");
    }
}
