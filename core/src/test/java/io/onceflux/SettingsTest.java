package io.onceflux;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.r2dbc.spi.ConnectionFactories;
import io.r2dbc.spi.ConnectionFactory;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

class SettingsTest {

    private static final ConnectionFactory UNUSED =
            ConnectionFactories.get("r2dbc:postgresql://nobody:nothing@localhost:1/none");

    static Stream<Arguments> outOfRange() {
        return Stream.of(
                wrong("lanes", builder -> builder.lanes(0)),
                wrong("maxInFlight", builder -> builder.maxInFlight(0)),
                wrong(
                        "maxInFlight (4) must be more than lanes (4)",
                        builder -> builder.lanes(4).maxInFlight(4)),
                wrong("maxInFlight must be at most", builder -> builder.maxInFlight(Integer.MAX_VALUE)),
                wrong("timeLimit", builder -> builder.timeLimit(Duration.ZERO)),
                wrong(
                        "timeLimit must be from 1 ms to 365 days",
                        builder -> builder.timeLimit(ChronoUnit.FOREVER.getDuration())),
                wrong("settleLimit", builder -> builder.settleLimit(Duration.ofDays(366))),
                wrong("downAfter", builder -> builder.downAfter(Duration.ZERO)),
                wrong("lockTimeout", builder -> builder.lockTimeout(Duration.ofNanos(1))),
                wrong(
                        "lockTimeout must be at most PT596H31M23.647S",
                        builder -> builder.timeLimit(Duration.ofDays(30)).lockTimeout(Duration.ofDays(25))),
                wrong("controlLimit", builder -> builder.controlLimit(Duration.ofSeconds(-1))),
                wrong("settleLimit", builder -> builder.settleLimit(Duration.ZERO)),
                wrong("startLimit", builder -> builder.startLimit(Duration.ZERO)),
                wrong("processBudget", builder -> builder.processBudget(Duration.ZERO)),
                wrong(
                        "lockTimeout (PT10S) must be shorter than timeLimit (PT10S)",
                        builder -> builder.timeLimit(Duration.ofSeconds(10))));
    }

    private static Arguments wrong(String named, Consumer<ConsumerBuilder<Order>> change) {
        return Arguments.of(named, change);
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("outOfRange")
    void aValueOutOfRangeIsRefusedByItsName(String named, Consumer<ConsumerBuilder<Order>> change) {
        ConsumerBuilder<Order> builder = Consumers.orders(Order::apply);
        change.accept(builder);
        assertThatThrownBy(() -> builder.build(UNUSED))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining(named);
    }

    @Test
    @SuppressWarnings("NullAway") // as from code without annotations
    void nullIsRefusedByTheNameOfTheSetting() {
        ConsumerBuilder<Order> builder = Consumers.orders(Order::apply);
        assertThatThrownBy(() -> builder.identifiedBy(null))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessage("identifiedBy must not be null");
        assertThatThrownBy(() -> builder.listener(null)).hasMessage("listener must not be null");
        assertThatThrownBy(() -> builder.claimTable(null)).hasMessage("claimTable must not be null");
        assertThatThrownBy(() -> builder.timeLimit(null)).hasMessage("timeLimit must not be null");
        assertThatThrownBy(() -> builder.build(null)).hasMessage("connections must not be null");
        assertThatThrownBy(() -> IdempotentConsumer.named(null))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessage("the consumer's name must not be null");
        assertThatThrownBy(() -> FailurePolicy.builder().classifying(null))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessage("classifying must not be null");
        assertThatThrownBy(() -> FailurePolicy.builder().conflictTimeout(null).build())
                .isInstanceOf(InvalidSetupException.class)
                .hasMessage("conflictTimeout must not be null");
    }

    @Test
    @SuppressWarnings("NullAway") // as from code without annotations
    void aConsumerRefusesNullByTheNameOfTheParameter() {
        IdempotentConsumer<Order> consumer = Consumers.loyalty(UNUSED);
        assertThatThrownBy(() -> consumer.stop(null).block())
                .isInstanceOf(InvalidSetupException.class)
                .hasMessage("limit must not be null");
        assertThatThrownBy(() -> consumer.claimInTransaction(null).block())
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("messageId must not be null");
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "  ", "a\0b", "a\uD83D", "\uDE00b"})
    void aConsumerNeedsAUsableName(String name) {
        assertThatThrownBy(() -> Consumers.named(name, Order::apply).build(UNUSED))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining("the consumer's name");
    }

    @Test
    void aConsumersNameHasAtMost100Characters() {
        assertThat(Consumers.named("x".repeat(100), Order::apply).build(UNUSED)).isNotNull();
        assertThatThrownBy(() -> Consumers.named("x".repeat(101), Order::apply).build(UNUSED))
                .hasMessageContaining("at most 100 characters");
    }

    @Test
    void aConsumerNeedsAWayToIdentifyAMessageAndAnEffect() {
        assertThatThrownBy(() -> IdempotentConsumer.<Order>named("loyalty")
                        .effect(Order::apply)
                        .build(UNUSED))
                .hasMessageContaining("no way to identify a message: use identifiedBy");
        assertThatThrownBy(() -> IdempotentConsumer.<Order>named("loyalty")
                        .identifiedByMessageId()
                        .build(UNUSED))
                .hasMessageContaining("has no effect");
    }

    @Test
    void buildingAConsumerOpensNoConnection() {
        ConnectionFactory refusing = new ConnectionFactory() {
            @Override
            public Mono<io.r2dbc.spi.Connection> create() {
                throw new AssertionError("a connection was opened");
            }

            @Override
            public io.r2dbc.spi.ConnectionFactoryMetadata getMetadata() {
                return () -> "PostgreSQL";
            }
        };
        IdempotentConsumer<Order> consumer = Consumers.loyalty(refusing);
        assertThat(Flux.<Delivery<Order>>never().transform(consumer)).isNotNull();
        assertThat(consumer.process(TestDelivery.order("1"))).isNotNull();
    }

    static Stream<Arguments> badPolicies() {
        return Stream.of(
                policy("maxAttempts", builder -> builder.maxAttempts(0)),
                policy("backoff's min of", builder -> builder.backoff(Duration.ZERO, Duration.ofSeconds(1))),
                policy("backoff's max of", builder -> builder.backoff(Duration.ofMillis(1), Duration.ZERO)),
                policy(
                        "(PT2S) must not be longer than its max (PT1S)",
                        builder -> builder.backoff(Duration.ofSeconds(2), Duration.ofSeconds(1))),
                policy(
                        "backoff's min of CONFLICT must be",
                        builder -> builder.backoff(
                                FailureKind.CONFLICT, Backoff.between(Duration.ZERO, Duration.ofSeconds(1)))),
                policy(
                        "PERMANENT, but such a failure is never tried again",
                        builder -> builder.backoff(
                                FailureKind.PERMANENT, Backoff.between(Duration.ofSeconds(1), Duration.ofSeconds(1)))),
                policy("conflictTimeout", builder -> builder.conflictTimeout(Duration.ZERO)),
                policy("quarantineAfter", builder -> builder.quarantineAfter(0)),
                policy("alarmAfter", builder -> builder.alarmAfter(-1)));
    }

    private static Arguments policy(String named, Consumer<FailurePolicy.Builder> change) {
        return Arguments.of(named, change);
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("badPolicies")
    void aPolicyOutOfRangeIsRefusedByTheNameOfItsPart(String named, Consumer<FailurePolicy.Builder> change) {
        FailurePolicy.Builder builder = FailurePolicy.builder();
        change.accept(builder);
        assertThatThrownBy(builder::build)
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining(named);
    }

    @Test
    void pausesDoubleUpToTheLongestAndAreSpreadByUpToHalf() {
        Backoff longest = new Backoff(Duration.ofMillis(100), Duration.ofSeconds(5), () -> 0);
        assertThat(Stream.of(1, 2, 3, 6, 7, 40, Integer.MAX_VALUE).map(longest::after))
                .containsExactly(
                        Duration.ofMillis(100),
                        Duration.ofMillis(200),
                        Duration.ofMillis(400),
                        Duration.ofMillis(3_200),
                        Duration.ofSeconds(5),
                        Duration.ofSeconds(5),
                        Duration.ofSeconds(5));
        Backoff shortest = new Backoff(Duration.ofMillis(100), Duration.ofSeconds(5), () -> 1);
        assertThat(shortest.after(1)).isEqualTo(Duration.ofMillis(50));
        Backoff huge = new Backoff(Duration.ofDays(365_000), Duration.ofDays(365_000), () -> 0);
        assertThat(huge.after(20)).isEqualTo(Duration.ofDays(365_000));
    }
}
