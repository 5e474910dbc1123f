package io.onceflux.rabbit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Command;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.TrafficListener;
import io.onceflux.Claims;
import io.onceflux.Database;
import io.onceflux.InvalidSetupException;
import io.onceflux.Order;
import io.onceflux.PermanentFailure;
import io.onceflux.services.RabbitService;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Mono;

/** A wrong set-up is one clear sentence, and no message is taken. */
class RefusesBadSetupTest {

    private final Database database = Database.create();
    private final Broker broker = Broker.create();

    @AfterEach
    void close() {
        broker.close();
        database.close();
    }

    private String failureWith(RabbitOptions options) {
        try (Running running = Running.start(options, database.pool(6), Order::apply)) {
            await().atMost(Duration.ofSeconds(30)).until(() -> running.error.get() != null);
            Throwable error = Objects.requireNonNull(running.error.get());
            assertThat(error).isInstanceOf(InvalidSetupException.class);
            assertThat(running.outcomes).isEmpty();
            return String.valueOf(error.getMessage());
        }
    }

    private ConnectionFactory factory(UnaryOperator<ConnectionFactory> change) {
        return change.apply(broker.factory());
    }

    @Test
    void aMissingQueue() {
        assertThat(failureWith(broker.options().build()))
                .contains("Queue '" + broker.queue() + "' does not exist", "declare(QueueDeclaration)");
    }

    @Test
    void aMissingDeadLetterQueueAndNothingIsConsumed() {
        broker.declare();
        broker.publish("order-1");
        broker.delete(broker.deadLetterQueue());
        assertThat(failureWith(broker.options().build()))
                .contains("Queue '" + broker.deadLetterQueue() + "' does not exist", "Dead letters go there");
        await().until(() -> broker.ready(broker.queue()) == 1);
    }

    @Test
    void aMissingDeadLetterExchange() {
        broker.declare();
        assertThat(failureWith(broker.options().deadLettersTo("nowhere", "x").build()))
                .contains("Exchange 'nowhere'", "does not exist");
    }

    @Test
    void aQueueThatWasDeclaredOtherwise() {
        broker.declare();
        assertThat(failureWith(
                        broker.options().declare(QueueDeclaration.quorum(5)).build()))
                .contains("exists", "with other properties", "inequivalent arg 'x-queue-type'");
    }

    /** It would be consumed from its end on: what waits in it would never be seen. */
    @ParameterizedTest
    @ValueSource(strings = {"x-queue-type", "x-max-age", "x-max-length-bytes"})
    void aStreamWhateverItsLimits(String argument) {
        broker.declare(broker.deadLetterQueue(), Map.of());
        Map<String, Object> arguments = new HashMap<>(Map.of("x-max-age", "1D", "x-max-length-bytes", 1_000_000_000L));
        arguments.keySet().retainAll(Set.of(argument));
        arguments.put("x-queue-type", "stream");
        broker.declare(broker.queue(), arguments);
        broker.publish("order-1");
        String leastRights = broker.user("", "amq\\.default", broker.queue());
        assertThat(failureWith(broker.options()
                        .connectionFactory(broker.as(leastRights))
                        .build()))
                .contains("Queue '" + broker.queue() + "'", "is a stream", "classic or quorum");
    }

    @Test
    void aStreamThatIsToBeDeclaredAsAQueue() {
        broker.declare(broker.queue(), Map.of("x-queue-type", "stream"));
        assertThat(failureWith(
                        broker.options().declare(QueueDeclaration.classic()).build()))
                .contains("exists", "with other properties", "x-queue-type");
    }

    @Test
    void aWrongPasswordWhichIsNotRepeated() {
        String sentence = failureWith(broker.options()
                .connectionFactory(factory(factory -> {
                    factory.setPassword("s3cret");
                    return factory;
                }))
                .build());
        assertThat(sentence)
                .contains("refuses the login", "user, password and virtual host")
                .doesNotContain("s3cret");
    }

    /** The client takes it for a refused login; the broker has said nothing of the kind. */
    @Test
    void aBrokerThatIsLostDuringTheLoginIsNoWrongPasswordAndIsWaitedFor() throws Exception {
        broker.declare();
        broker.publish("order-1");
        RabbitService real = RabbitService.shared();
        try (LoginCuttingProxy proxy = new LoginCuttingProxy(real.host(), real.port(), 3);
                Running running = Running.start(
                        broker.options()
                                .connectionFactory(factory(factory -> {
                                    factory.setHost("127.0.0.1");
                                    factory.setPort(proxy.port());
                                    return factory;
                                }))
                                .build(),
                        database.pool(6),
                        Order::apply)) {
            await().until(() -> running.outcomes.size() == 1);
            assertThat(running.listener.lost).hasSizeGreaterThanOrEqualTo(3);
            assertThat(proxy.toCut).hasValue(0);
            running.stop();
        }
        database.assertAppliedOnce(1);
    }

    @Test
    void aVirtualHostThatDoesNotExist() {
        assertThat(failureWith(broker.options()
                        .connectionFactory(factory(factory -> {
                            factory.setVirtualHost("nowhere");
                            return factory;
                        }))
                        .build()))
                .contains("refuses the login", "virtual host");
    }

    @Test
    void aBrokerThatCannotBeReachedIsWaitedForUpToTheStartLimit() throws Exception {
        int free;
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            free = socket.getLocalPort();
        }
        assertThat(failureWith(broker.options()
                        .connectionFactory(factory(factory -> {
                            factory.setPort(free);
                            return factory;
                        }))
                        .startLimit(Duration.ofSeconds(1))
                        .build()))
                .contains("could not be reached for 1 s", "check host and port", "127.0.0.1:" + free);
    }

    @Test
    void aUserWhoMayNotReadTheQueue() {
        broker.declare();
        broker.publish("order-1");
        assertThat(failureWith(broker.options()
                        .connectionFactory(broker.as(broker.user(".*", ".*", "")))
                        .build()))
                .contains("the right to read", "'" + broker.queue() + "'", "at 127.0.0.1:", "ACCESS_REFUSED - access")
                .doesNotContain("RabbitFluxException");
        await().until(() -> broker.ready(broker.queue()) == 1);
    }

    @Test
    void aUserWhoMayNotPublishDeadLetters() {
        broker.declare();
        broker.publish("order-1");
        assertThat(failureWith(broker.options()
                        .connectionFactory(broker.as(broker.user(".*", "orders.*", ".*")))
                        .build()))
                .contains(
                        "no right to write to exchange 'amq.default'",
                        "'" + broker.deadLetterQueue() + "'",
                        "ACCESS_REFUSED - access to exchange");
        await().until(() -> broker.ready(broker.queue()) == 1);
    }

    @Test
    void aUserWhoMayNotDeclareTheQueue() {
        assertThat(failureWith(broker.options()
                        .declare(QueueDeclaration.classic())
                        .connectionFactory(broker.as(broker.user("", ".*", ".*")))
                        .build()))
                .contains("no right", "declare", "ACCESS_REFUSED - access to queue");
    }

    @Test
    void aUserWhoMayNotDeclareTheDefaultExchangeAsThePlaceForDeadLetters() {
        assertThat(failureWith(broker.options()
                        .declare(QueueDeclaration.classic())
                        .connectionFactory(broker.as(broker.user(".*", "orders.*", ".*")))
                        .build()))
                .contains("no right", "declare", "ACCESS_REFUSED - access to exchange");
    }

    @Test
    void theLeastRightsThatTheReadmeNamesAreEnough() {
        broker.declare();
        broker.publish("order-1");
        try (Running running = Running.start(
                broker.options()
                        .connectionFactory(broker.as(broker.user("", "amq\\.default", broker.queue())))
                        .build(),
                database.pool(6),
                (order, db) -> {
                    throw new PermanentFailure("bad");
                })) {
            broker.awaitDeadLetters(1);
            running.stop();
        }
    }

    @Test
    void aQueueThatSomebodyElseConsumesExclusively() throws Exception {
        broker.declare();
        try (Connection elsewhere = broker.consumeExclusively()) {
            assertThat(failureWith(broker.options().build()))
                    .contains("may be exclusive", "'" + broker.queue() + "'", "in exclusive use");
            assertThat(elsewhere.isOpen()).isTrue();
        }
    }

    @Test
    void aQueueThatIsGoneWheneverItIsConsumedIsTriedWithPausesUpToTheStartLimit() {
        AtomicInteger attempts = new AtomicInteger();
        assertThat(failureWith(broker.options()
                        .declare(QueueDeclaration.classic())
                        .connectionFactory(factory(factory -> {
                            factory.setTrafficListener(beforeConsuming(() -> {
                                attempts.incrementAndGet();
                                broker.delete(broker.queue());
                            }));
                            return factory;
                        }))
                        .startLimit(Duration.ofSeconds(2))
                        .build()))
                .contains("queue '" + broker.queue() + "' not be consumed", "NOT_FOUND - no queue");
        assertThat(attempts).hasValueBetween(2, 20);
    }

    /** The source limits its prefetch just before it consumes. */
    private static TrafficListener beforeConsuming(Runnable act) {
        return new TrafficListener() {
            @Override
            public void write(Command command) {
                if (command.getMethod() instanceof AMQP.Basic.Qos) {
                    act.run();
                }
            }

            @Override
            public void read(Command command) {}
        };
    }

    @Test
    void aMissingClaimTableTakesNoMessage() {
        broker.declare();
        broker.publish("order-1");
        database.run("DROP TABLE processed_messages");
        assertThat(failureWith(broker.options().build())).contains("processed_messages does not exist");
        assertThat(broker.ready(broker.queue())).isEqualTo(1);
    }

    @Test
    void optionsOutOfRangeNameTheProperty() {
        assertThatThrownBy(() -> broker.options().prefetch(0).build())
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("prefetch must be from 1 to 65535, but is 0");
        assertThatThrownBy(() -> RabbitOptions.queue(" ").build()).hasMessageContaining("queue must not be blank");
        assertThatThrownBy(() -> broker.options().confirmLimit(Duration.ZERO).build())
                .hasMessageContaining("confirmLimit must be at least 1 ms");
        assertThatThrownBy(() -> RabbitOptions.queue("q").uri("amqp//user:s3cret@host"))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageNotContaining("s3cret")
                .hasNoCause();
    }

    @Test
    void aPrefetchBelowTheLanesIsAWarningAndNotAHang() {
        broker.declare();
        broker.publish("order-1", "order-2", "order-3");
        try (Running running = Running.start(
                broker.options().prefetch(1).build(), database.pool(9), Order::apply, builder -> builder.lanes(8))) {
            await().until(() -> running.outcomes.size() == 3);
            broker.awaitNoBacklog();
            assertThat(running.listener.warnings)
                    .anySatisfy(warning -> assertThat(warning).contains("prefetch 1", "8 lanes"));
            running.stop();
        }
    }

    /** Such as an offset fence: in a queue no message has a place, and those before one would pass for seen. */
    @Test
    void claimsThatFollowTheOrderOfALog() {
        broker.declare();
        Claims places = new Claims() {
            @Override
            public Mono<List<String>> verify(io.r2dbc.spi.Connection connection, String consumer) {
                return Mono.just(List.of());
            }

            @Override
            public Mono<Claimed> claim(
                    io.r2dbc.spi.Connection inTransaction, List<Claim> claims, Duration lockTimeout) {
                return Mono.just(new Claimed(Set.of(claims.get(0).key())));
            }

            @Override
            public boolean followSource() {
                return true;
            }

            @Override
            public String toString() {
                return "a fence";
            }
        };
        broker.publish("order-1");
        try (Running running = Running.start(
                broker.options().build(), database.pool(6), Order::apply, builder -> builder.claims(places))) {
            await().until(() -> running.error.get() != null);
            assertThat(running.error.get())
                    .isInstanceOf(InvalidSetupException.class)
                    .hasMessageContaining("a fence")
                    .hasMessageContaining("a queue has none");
        }
        assertThat(database.effects()).isZero();
    }
}
