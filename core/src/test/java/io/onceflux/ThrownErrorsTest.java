package io.onceflux;

import static io.onceflux.Consumers.failureOf;
import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.policy;
import static io.onceflux.Consumers.run;
import static org.assertj.core.api.Assertions.assertThat;

import io.r2dbc.pool.ConnectionPool;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.r2dbc.connection.ConnectionFactoryUtils;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Errors that Reactor throws at the driver instead of signalling them: their message fails, and nothing waits or breaks. */
class ThrownErrorsTest {

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(10);

    private static Mono<Integer> overflow() {
        throw new StackOverflowError();
    }

    static Stream<Named<Effect<Order>>> thrown() {
        return Stream.of(
                Named.of("by the effect", (order, db) -> overflow()),
                Named.of("when it is subscribed", (order, db) -> Mono.fromCallable(ThrownErrorsTest::overflow)),
                Named.of("beside a value", (order, db) -> Flux.just(1, 2).map(n -> n == 1 ? Mono.just(n) : overflow())),
                Named.of(
                        "on a statement's count",
                        (order, db) -> order.note(db)
                                .then(db.sql("UPDATE point_ledger SET points = 1")
                                        .fetch()
                                        .rowsUpdated())
                                .map(n -> overflow())),
                Named.of(
                        "on a row",
                        (order, db) -> db.sql("SELECT 1").map(row -> 1).all().map(n -> overflow())),
                Named.of(
                        "while a row is read",
                        (order, db) -> db.sql("SELECT 1").map(row -> overflow()).all()),
                Named.of(
                        "after a statement",
                        (order, db) -> order.note(db).then(Mono.defer(ThrownErrorsTest::overflow))));
    }

    @ParameterizedTest
    @MethodSource("thrown")
    void itsMessageFailsAtOnceAndTheOthersAreApplied(Effect<Order> effect) {
        assertItsMessageFailsAtOnceAndTheOthersAreApplied(effect);
    }

    @Test
    void anErrorOnAnotherWayToTheTransactionIsNoDifferent() {
        assertItsMessageFailsAtOnceAndTheOthersAreApplied((order, db) -> ConnectionFactoryUtils.getConnection(pool)
                .flatMapMany(
                        connection -> connection.createStatement("SELECT 1").execute())
                .flatMap(result -> result.map(row -> 1))
                .map(n -> overflow()));
    }

    private void assertItsMessageFailsAtOnceAndTheOthersAreApplied(Effect<Order> effect) {
        RecordingListener listener = new RecordingListener();
        TestDelivery<Order> bad = TestDelivery.order("bad");
        List<TestDelivery<Order>> deliveries = new ArrayList<>(TestDelivery.orders("good", 6));
        deliveries.add(1, bad);
        Effect<Order> sometimes = (order, db) -> order.id().equals("bad") ? effect.apply(order, db) : order.apply(db);
        run(
                orders(sometimes)
                        .lanes(2)
                        .timeLimit(Duration.ofMinutes(10))
                        .failurePolicy(policy().maxAttempts(2).build())
                        .listener(listener)
                        .build(pool),
                deliveries);

        assertThat(bad.isDeadLettered()).isTrue();
        assertThat(listener.outcomes)
                .filteredOn(Outcome.Failed.class::isInstance)
                .singleElement()
                .satisfies(failed -> assertThat(failureOf(failed).reason()).isEqualTo("StackOverflowError"))
                .satisfies(failed -> assertThat(failureOf(failed).attempts()).isEqualTo(2));
        database.assertAppliedOnce(6);
    }

    @Test
    void anExceptionThatThrowsInsteadOfTellingItsMessageFailsItsMessageOnly() {
        TestDelivery<Order> bad = TestDelivery.order("bad");
        Effect<Order> effect = (order, db) -> order.id().equals("bad")
                ? Mono.error(new RuntimeException() {
                    @Override
                    public String getMessage() {
                        throw new IllegalStateException("no message");
                    }
                })
                : order.apply(db);
        run(orders(effect).build(pool), List.of(TestDelivery.order("1"), bad, TestDelivery.order("2")));

        assertThat(bad.isDeadLettered()).isTrue();
        database.assertAppliedOnce(2);
    }

    @Test
    void aDeliveryThatThrowsInsteadOfTellingItsOriginIsSettledAllTheSame() {
        TestDelivery<Order> delivery = TestDelivery.order("bad");
        RecordingListener listener = new RecordingListener();
        Effect<Order> failing = (order, db) -> Mono.error(new PermanentFailure("no"));
        Flux.<Delivery<Order>>just(new Nameless(delivery))
                .transform(orders(failing).listener(listener).build(pool))
                .then()
                .block();

        assertThat(delivery.isDeadLettered()).isTrue();
        assertThat(listener.outcomes).hasSize(1);
    }

    private record Nameless(TestDelivery<Order> delivery) implements Delivery<Order> {

        @Override
        public Order payload() {
            return delivery.payload();
        }

        @Override
        public @Nullable String id() {
            return delivery.id();
        }

        @Override
        public Mono<Void> settle(Settlement settlement) {
            return delivery.settle(settlement);
        }

        @Override
        public String origin() {
            throw new IllegalStateException("from nowhere");
        }
    }
}
