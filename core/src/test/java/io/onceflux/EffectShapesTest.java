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
import java.util.Objects;
import java.util.stream.Stream;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Whatever shape an effect has, or however it fails, its message has one outcome and the stream lives. */
class EffectShapesTest {

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(10);

    static Stream<Named<Effect<Order>>> fulfilled() {
        return Stream.of(
                Named.of("an empty Mono", (order, db) -> order.note(db)),
                Named.of("a Mono with a value", (order, db) -> order.note(db).thenReturn("done")),
                Named.of("a Flux of none", (order, db) -> order.note(db).thenMany(Flux.empty())),
                Named.of(
                        "a Flux of five",
                        (order, db) -> Flux.range(0, 5)
                                .concatMap(n -> n == 4 ? order.note(db).thenReturn(n) : Mono.just(n))),
                Named.of(
                        "a query of which the first row is taken",
                        (order, db) -> order.note(db)
                                .then(db.sql("SELECT n FROM generate_series(1, 3) AS n")
                                        .fetch()
                                        .first())),
                Named.of(
                        "a bound query of which the first row is taken",
                        (order, db) -> order.note(db)
                                .then(db.sql("SELECT n FROM generate_series(1, :last) AS n")
                                        .bind("last", 3)
                                        .fetch()
                                        .first())),
                Named.of(
                        "a query of which five rows are taken",
                        (order, db) -> db.sql("SELECT n FROM generate_series(1, 1000) AS n")
                                .fetch()
                                .all()
                                .take(5)
                                .then(order.note(db))),
                Named.of(
                        "a RETURNING of which the first row is taken",
                        (order, db) -> order.note(db)
                                .then(db.sql("UPDATE point_ledger SET points = points RETURNING order_id")
                                        .map(row -> true)
                                        .first())),
                Named.of(
                        "plain R2DBC with Mono.from",
                        (order, db) -> db.inConnection(connection -> Mono.from(connection
                                        .createStatement("INSERT INTO point_ledger VALUES ($1, 'c', 1)")
                                        .bind(0, order.id())
                                        .execute())
                                .flatMap(result -> Mono.from(result.getRowsUpdated())))),
                Named.of(
                        "plain R2DBC without parameters",
                        (order, db) -> db.inConnection(connection -> Flux.from(connection
                                        .createStatement(
                                                "INSERT INTO point_ledger VALUES ('" + order.id() + "', 'c', 1)")
                                        .execute())
                                .flatMap(result -> result.getRowsUpdated())
                                .then())),
                Named.of(
                        "a Flux that writes after its first element",
                        (order, db) -> Flux.just(1).concatWith(order.note(db).thenReturn(2))));
    }

    @ParameterizedTest
    @MethodSource("fulfilled")
    void itIsAppliedOnce(Effect<Order> effect) {
        RecordingListener listener = new RecordingListener();
        run(orders(effect).listener(listener).build(pool), TestDelivery.orders("s", 3));

        assertThat(listener.count(Outcome.Applied.class)).isEqualTo(3);
        assertThat(listener.count(Outcome.Duplicate.class)).isZero();
        database.assertAppliedOnce(3);
    }

    @SuppressWarnings("NullAway") // an effect from code without annotations may return null
    static Stream<Named<Effect<Order>>> failing() {
        return Stream.of(
                Named.of("null", (order, db) -> null),
                Named.of("a synchronous throw", (order, db) -> {
                    throw new IllegalStateException("at once");
                }),
                Named.of("a synchronous Error", (order, db) -> {
                    throw new AssertionError("at once");
                }),
                Named.of("a synchronous StackOverflowError", (order, db) -> {
                    throw new StackOverflowError();
                }),
                Named.of("a synchronous OutOfMemoryError", (order, db) -> {
                    throw new OutOfMemoryError("not really");
                }),
                Named.of(
                        "a Result that nobody reads",
                        (order, db) -> db.inConnection(connection -> Flux.from(connection
                                        .createStatement("INSERT INTO point_ledger VALUES ($1, 'c', 1)")
                                        .bind(0, order.id())
                                        .execute())
                                .then())),
                Named.of("an error signal", (order, db) -> order.note(db).then(Mono.error(new Exception("checked")))),
                Named.of("an Error signal", (order, db) -> order.note(db).then(Mono.error(new LinkageError("late")))),
                Named.of(
                        "a StackOverflowError signal",
                        (order, db) -> order.note(db).then(Mono.error(new StackOverflowError()))),
                Named.of(
                        "a mapped error",
                        (order, db) -> db.sql("INSERT INTO nowhere VALUES (1)")
                                .then()
                                .onErrorMap(error -> new IllegalArgumentException("without its cause"))),
                Named.of(
                        "a throw in an operator",
                        (order, db) -> order.note(db).thenReturn(1).map(n -> {
                            throw new IllegalStateException("in map");
                        })),
                Named.of(
                        "an Error in an operator",
                        (order, db) -> order.note(db).thenReturn(1).map(n -> {
                            throw new AssertionError("in map");
                        })),
                Named.of(
                        "a StackOverflowError in an operator",
                        (order, db) -> order.note(db).thenReturn(1).map(n -> {
                            throw new StackOverflowError();
                        })));
    }

    @ParameterizedTest
    @MethodSource("failing")
    void itFailsIsNotAcknowledgedAndTheNextMessagesAreApplied(Effect<Order> effect) {
        TestDelivery<Order> bad = TestDelivery.order("bad");
        List<TestDelivery<Order>> deliveries = new ArrayList<>(TestDelivery.orders("good", 6));
        deliveries.add(1, bad);
        Effect<Order> sometimes = (order, db) -> order.id().equals("bad") ? effect.apply(order, db) : order.apply(db);
        List<Outcome> outcomes = run(
                orders(sometimes)
                        .lanes(2)
                        .timeLimit(Duration.ofMillis(500))
                        .lockTimeout(Duration.ofMillis(400))
                        .failurePolicy(policy().maxAttempts(2).build())
                        .build(pool),
                deliveries);

        assertThat(outcomes).filteredOn(Outcome.Failed.class::isInstance).hasSize(1);
        assertThat(bad.isDeadLettered()).isTrue();
        database.assertAppliedOnce(6);
    }

    @Test
    void aThrowingExtractorOfTheIdOrOfTheOrderFailsItsMessageOnly() {
        IdempotentConsumer<Order> byId = IdempotentConsumer.<Order>named("by-id")
                .identifiedBy(order -> {
                    if (order.id().equals("bad")) {
                        throw new StackOverflowError();
                    }
                    return order.id();
                })
                .effect(Order::apply)
                .lanes(2)
                .build(pool);
        IdempotentConsumer<Order> byOrder = IdempotentConsumer.<Order>named("by-order")
                .identifiedBy(order -> order.id())
                .orderedBy(order -> {
                    if (order.id().equals("bad")) {
                        throw new IllegalArgumentException("no order");
                    }
                    return order.customer();
                })
                .effect(Order::apply)
                .lanes(2)
                .build(pool);
        for (IdempotentConsumer<Order> consumer : List.of(byId, byOrder)) {
            TestDelivery<Order> bad = TestDelivery.order("bad");
            List<Outcome> outcomes = run(consumer, List.of(TestDelivery.order("1"), bad, TestDelivery.order("2")));
            Outcome failed = outcomes.stream()
                    .filter(Outcome.Failed.class::isInstance)
                    .findFirst()
                    .orElseThrow();
            assertThat(failureOf(failed).reason()).matches("(identifiedBy|orderedBy) threw .*");
            assertThat(failureOf(failed).kind()).isEqualTo(FailureKind.PERMANENT);
            assertThat(bad.isDeadLettered()).isTrue();
        }
        assertThat(database.claims()).isEqualTo(4);
    }

    @Test
    void aPayloadThatCannotBeDecodedFailsItsMessageOnly() {
        TestDelivery<String> junk = new TestDelivery<>("junk", "{");
        List<TestDelivery<String>> deliveries =
                List.of(new TestDelivery<>("1", "1"), junk, new TestDelivery<>("2", "2"));
        IdempotentConsumer<Integer> numbers = IdempotentConsumer.<Integer>named("numbers")
                .identifiedBy(number -> "n" + number)
                .effect((number, db) -> Order.of("n" + number).note(db))
                .lanes(2)
                .build(pool);
        List<Outcome> outcomes = Objects.requireNonNull(Flux.<Delivery<String>>fromIterable(deliveries)
                .map(Delivery.decoding(Integer::valueOf))
                .transform(numbers)
                .collectList()
                .block());

        assertThat(outcomes).hasSize(3);
        assertThat(junk.isDeadLettered()).isTrue();
        database.assertAppliedOnce(2);
    }

    @Test
    void aListenerThatThrowsChangesNothing() {
        ConsumerListener throwing = new ConsumerListener() {
            @Override
            public void onOutcome(Delivery<?> delivery, Outcome outcome, Duration elapsed) {
                throw new StackOverflowError();
            }
        };
        List<TestDelivery<Order>> deliveries = TestDelivery.orders("l", 10);
        assertThat(run(orders(Order::apply).listener(throwing).build(pool), deliveries))
                .hasSize(10);
        assertThat(deliveries).allMatch(TestDelivery::isAcknowledged);
        database.assertAppliedOnce(10);
    }

    @Test
    void theReasonOfAFailureIsBounded() {
        Failure failure = failureOf(run(
                orders((order, db) -> Mono.error(new PermanentFailure("x".repeat(100_000))))
                        .build(pool),
                TestDelivery.order("1")));
        assertThat(failure.reason()).hasSize(Failure.MAX_REASON);
    }
}
