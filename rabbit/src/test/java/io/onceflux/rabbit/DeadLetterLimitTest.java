package io.onceflux.rabbit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.rabbitmq.client.Connection;
import io.onceflux.Intake;
import io.onceflux.InvalidSetupException;
import io.onceflux.RecordingListener;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import reactor.core.publisher.Mono;

/**
 * The delivery limit of a quorum queue of dead letters, for brokers with and without a limit by default. A connection to the broker of the
 * tests says that it is to another version.
 */
class DeadLetterLimitTest {

    private static final QueueDeclaration QUORUM = QueueDeclaration.quorum(20);

    private static final Intake.Connections UNUSED = new Intake.Connections() {
        @Override
        public <R> Mono<R> use(Function<io.r2dbc.spi.Connection, Mono<R>> work) {
            return Mono.error(new AssertionError("no database is needed"));
        }
    };

    private final Broker broker = Broker.create();
    private final RecordingListener listener = new RecordingListener();
    private final Topology topology = new Topology(
            broker.options().declare(QUORUM).build(),
            new Intake(
                    "loyalty",
                    true,
                    1,
                    250,
                    Duration.ZERO,
                    false,
                    null,
                    null,
                    UNUSED,
                    Mono.empty(),
                    Mono.never(),
                    () -> () -> {},
                    listener));

    @AfterEach
    void close() {
        broker.close();
    }

    private void ensureAt(String product, String version) throws Exception {
        try (Connection real = broker.factory().newConnection("test")) {
            Map<String, Object> properties = Map.of("product", product, "version", version);
            Connection told = (Connection) Proxy.newProxyInstance(
                    Connection.class.getClassLoader(),
                    new Class<?>[] {Connection.class},
                    (proxy, method, arguments) -> {
                        try {
                            return method.getName().equals("getServerProperties")
                                    ? properties
                                    : method.invoke(real, arguments);
                        } catch (InvocationTargetException e) {
                            throw e.getCause();
                        }
                    });
            topology.ensure(new BrokerConnection(told, null, ended -> {}));
        }
    }

    private boolean isDeclaredAs(boolean limitByDefault) {
        return broker.isDeclaredWith(broker.deadLetterQueue(), QUORUM.deadLetterQueueArguments(limitByDefault));
    }

    @Test
    void whereTheBrokerHasALimitByDefaultTheQueueIsDeclaredWithNone() throws Exception {
        ensureAt("RabbitMQ", "4.0.0-rc.1");
        assertThat(isDeclaredAs(true)).isTrue();
        assertThat(QUORUM.deadLetterQueueArguments(true)).containsEntry("x-delivery-limit", -1);
        assertThat(listener.warnings).isEmpty();
    }

    @ParameterizedTest
    @CsvSource({"RabbitMQ, 3.10.8", "RabbitMQ, 3.13.7", "RabbitMQ, odd", "Another, 9.2.0"})
    void whereItHasNoneTheQueueIsDeclaredWithoutOneBecauseMinusOneWouldDropLetters(String product, String version)
            throws Exception {
        ensureAt(product, version);
        assertThat(isDeclaredAs(false)).isTrue();
        assertThat(isDeclaredAs(true)).isFalse();
    }

    @Test
    void aQueueThatWasDeclaredBeforeTheBrokerWasUpgradedIsTakenWithAWarning() throws Exception {
        ensureAt("RabbitMQ", "3.13.7");
        ensureAt("RabbitMQ", "4.1.0");
        ensureAt("RabbitMQ", "4.1.0");
        assertThat(listener.warnings)
                .singleElement()
                .asString()
                .contains(broker.deadLetterQueue(), "policy with delivery-limit -1");
    }

    @Test
    void aQueueWithALimitOfItsOwnIsRefused() {
        broker.declare(broker.deadLetterQueue(), Map.of("x-queue-type", "quorum", "x-delivery-limit", 3));
        for (String version : List.of("3.13.7", "4.1.0")) {
            assertThatThrownBy(() -> ensureAt("RabbitMQ", version))
                    .isInstanceOf(InvalidSetupException.class)
                    .hasMessageContaining("exists at")
                    .hasMessageContaining(broker.deadLetterQueue());
        }
    }
}
