package io.onceflux;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.reactivestreams.Subscription;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.Disposable;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/**
 * What every source of deliveries keeps to, on its real broker. A source's test extends this and says how to get at a place of its
 * own there.
 */
public abstract class DeliveriesContract {

    private static final Duration LIMIT = Duration.ofSeconds(60);

    /** A queue or topic of its own, with a place for its dead letters. */
    public interface Place extends AutoCloseable {

        /** From the source under test. */
        Flux<Delivery<byte[]>> deliveries();

        /** Stored by the broker when it returns; in order, one after the other. */
        void publish(String id, byte[] body, Map<String, String> headers);

        /** How many messages the broker still has to see done. */
        long backlog();

        /** What has been given up. */
        List<Letter> deadLetters();

        /** A part of the name of each thread that the source starts. */
        String threads();

        @Override
        void close();
    }

    /** A dead letter, as the broker has it. */
    @SuppressWarnings("ArrayRecordComponent") // Two of them are never compared.
    public record Letter(byte[] body, Map<String, String> headers) {}

    protected abstract Place open();

    private final Database database = Database.create();
    private final Place place = open();
    private final RecordingListener listener = new RecordingListener();
    private final List<Disposable> subscriptions = new ArrayList<>();
    private final AtomicInteger underWay = new AtomicInteger();
    private final Sinks.Empty<Void> go = Sinks.empty();

    @AfterEach
    void close() {
        subscriptions.forEach(Disposable::dispose);
        await("the source leaves no thread behind")
                .atMost(LIMIT)
                .untilAsserted(() -> assertThat(Thread.getAllStackTraces().keySet().stream()
                                .map(Thread::getName)
                                .filter(name -> name.contains(place.threads())))
                        .isEmpty());
        database.assertNothingLeaked();
        place.close();
        database.close();
    }

    private void publish(String... ids) {
        for (String id : ids) {
            place.publish(id, id.getBytes(UTF_8), Map.of());
        }
    }

    private void publish(int count) {
        publish(IntStream.range(0, count).mapToObj(i -> "order-" + i).toArray(String[]::new));
    }

    private static String text(Delivery<byte[]> delivery) {
        return new String(delivery.payload(), UTF_8);
    }

    private static Order order(byte[] body) {
        return Order.of(new String(body, UTF_8));
    }

    private IdempotentConsumer<Order> consumer(Effect<Order> effect) {
        return IdempotentConsumer.<Order>named("loyalty")
                .identifiedBy(Order::id)
                .orderedBy(Order::id)
                .lanes(4)
                .maxInFlight(16)
                .listener(listener)
                .effect(effect)
                .build(database.pool(6));
    }

    private Mono<Void> applyWhenAllowed(Order order, DatabaseClient db) {
        return Mono.defer(() -> {
                    underWay.incrementAndGet();
                    return go.asMono();
                })
                .then(order.apply(db));
    }

    private List<Outcome> start(IdempotentConsumer<Order> consumer) {
        List<Outcome> outcomes = new CopyOnWriteArrayList<>();
        subscriptions.add(place.deliveries()
                .map(Delivery.<byte[], Order>decoding(DeliveriesContract::order))
                .transform(consumer)
                .subscribe(outcomes::add));
        return outcomes;
    }

    /** Without a consumer; each delivery is settled as told. */
    private List<String> start(java.util.function.Function<Delivery<byte[]>, Mono<Void>> handling) {
        List<String> seen = new CopyOnWriteArrayList<>();
        subscriptions.add(place.deliveries()
                .doOnNext(delivery -> seen.add(text(delivery)))
                .concatMap(handling)
                .subscribe());
        return seen;
    }

    private void awaitNoBacklog() {
        await().atMost(LIMIT).untilAsserted(() -> assertThat(place.backlog()).isZero());
    }

    @Test
    void aMessageIsDoneOnlyAfterItsCommit() {
        publish("one");
        start(consumer(this::applyWhenAllowed));
        await().atMost(LIMIT).until(() -> underWay.get() == 1);
        await("while its effect runs, it is not")
                .during(Duration.ofSeconds(1))
                .atMost(LIMIT)
                .until(() -> place.backlog() == 1);

        go.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);
        awaitNoBacklog();
        database.assertAppliedOnce(1);
    }

    @Test
    void whatIsNotSettledWhenItsConsumerDiesComesAgain() {
        publish(5);
        List<String> seen = new CopyOnWriteArrayList<>();
        Disposable dying = place.deliveries().subscribe(delivery -> seen.add(text(delivery)));
        await().atMost(LIMIT).until(() -> seen.size() == 5);
        dying.dispose();
        assertThat(place.backlog()).isEqualTo(5);

        List<String> again = start(delivery -> delivery.settle(Settlement.acknowledge()));
        await().atMost(LIMIT).until(() -> again.size() == 5);
        assertThat(again).containsExactlyInAnyOrderElementsOf(seen);
        awaitNoBacklog();
    }

    @Test
    void whatIsAcknowledgedDoesNotComeAgain() {
        publish(10);
        IdempotentConsumer<Order> first = consumer(Order::apply);
        List<Outcome> outcomes = start(first);
        await().atMost(LIMIT).until(() -> outcomes.size() == 10);
        first.stop().block(LIMIT);
        awaitNoBacklog();

        List<String> after = start(delivery -> delivery.settle(Settlement.acknowledge()));
        publish("canary");
        await().atMost(LIMIT).until(() -> after.contains("canary"));
        assertThat(after).containsExactly("canary");
        awaitNoBacklog();
    }

    @Test
    void stoppingLetsWhatIsUnderWayEndAndGivesTheRestBack() {
        publish(12);
        IdempotentConsumer<Order> stopping = consumer(this::applyWhenAllowed);
        List<Outcome> outcomes = start(stopping);
        await().atMost(LIMIT).until(() -> underWay.get() >= 3);
        int begun = underWay.get();

        Mono<Void> stop = stopping.stop().cache();
        subscriptions.add(stop.subscribe());
        go.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);
        stop.block(LIMIT);
        int applied = outcomes.size();
        assertThat(applied).isBetween(begun, 4);
        assertThat(listener.settleFailures).isEmpty();
        database.assertAppliedOnce(applied);

        List<Outcome> next = start(consumer(Order::apply));
        awaitNoBacklog();
        assertThat(next.stream().filter(Outcome.Applied.class::isInstance)).hasSize(12 - applied);
        database.assertAppliedOnce(12);
    }

    @Test
    void aMessageThatIsLetGoComesAgainAndIsNotDoneUntilThen() {
        publish("first", "let go", "last");
        AtomicInteger tries = new AtomicInteger();
        List<String> seen = start(delivery -> delivery.settle(
                text(delivery).equals("let go") && tries.incrementAndGet() <= 2
                        ? Settlement.requeue()
                        : Settlement.acknowledge()));
        await().atMost(LIMIT).until(() -> tries.get() == 3);
        awaitNoBacklog();
        assertThat(seen).hasSize(5).contains("first", "last");
    }

    @Test
    void aMessageThatIsLetGoAsItsConsumerGoesComesToTheNext() {
        publish("first", "let go", "last");
        List<String> seen = new CopyOnWriteArrayList<>();
        Disposable going = place.deliveries()
                .concatMap(delivery -> delivery.settle(
                                text(delivery).equals("let go") ? Settlement.requeue() : Settlement.acknowledge())
                        .doOnSuccess(done -> seen.add(text(delivery))))
                .subscribe();
        await().atMost(LIMIT).until(() -> seen.contains("last"));
        going.dispose();

        List<String> next = start(delivery -> delivery.settle(Settlement.acknowledge()));
        await().atMost(LIMIT).until(() -> next.contains("let go"));
        awaitNoBacklog();
    }

    @Test
    void aDeadLetterKeepsBodyAndHeadersAndSaysWhy() {
        byte[] body = {1, 2, (byte) 0xFF, (byte) 0xFE};
        place.publish("odd", body, Map.of("tenant", "acme"));
        publish("good");
        List<Outcome> outcomes = start(consumer((order, db) ->
                order.id().equals("good") ? order.apply(db) : Mono.error(new PermanentFailure("no such order"))));
        await().atMost(LIMIT).until(() -> outcomes.size() == 2);
        awaitNoBacklog();

        assertThat(place.deadLetters()).singleElement().satisfies(letter -> {
            assertThat(letter.body()).isEqualTo(body);
            assertThat(letter.headers())
                    .containsEntry("tenant", "acme")
                    .containsEntry("x-onceflux-reason", "no such order")
                    .containsEntry("x-onceflux-consumer", "loyalty")
                    .containsEntry("x-onceflux-kind", "PERMANENT");
        });
        database.assertAppliedOnce(1);
    }

    @Test
    void noMoreIsDeliveredThanWasAskedFor() {
        publish(10);
        List<String> seen = new CopyOnWriteArrayList<>();
        BaseSubscriber<Delivery<byte[]>> subscriber = new BaseSubscriber<>() {
            @Override
            protected void hookOnSubscribe(Subscription subscription) {
                subscription.request(3);
            }

            @Override
            protected void hookOnNext(Delivery<byte[]> delivery) {
                seen.add(text(delivery));
            }
        };
        subscriptions.add(subscriber);
        place.deliveries().subscribe(subscriber);
        await().atMost(LIMIT).until(() -> seen.size() == 3);
        await().during(Duration.ofSeconds(1)).atMost(LIMIT).until(() -> seen.size() == 3);

        subscriber.request(2);
        await().atMost(LIMIT).until(() -> seen.size() == 5);
        assertThat(place.backlog()).isEqualTo(10);
    }

    @Test
    void aSecondAnswerChangesNothing() {
        publish("one", "two");
        List<String> seen = start(delivery -> delivery.settle(Settlement.acknowledge())
                .then(Mono.defer(() -> delivery.settle(Settlement.requeue())))
                .then(Mono.defer(() -> delivery.settle(Settlement.acknowledge()))));
        await().atMost(LIMIT).until(() -> seen.size() == 2);
        awaitNoBacklog();
        assertThat(seen).containsExactly("one", "two");
    }

    @Test
    void nothingHappensBeforeSomebodySubscribes() {
        publish("one");
        Flux<Delivery<byte[]>> deliveries = place.deliveries();
        assertThat(deliveries).isNotNull();
        assertThat(Thread.getAllStackTraces().keySet().stream().map(Thread::getName))
                .noneMatch(name -> name.contains(place.threads()));
        assertThat(place.backlog()).isEqualTo(1);
    }
}
