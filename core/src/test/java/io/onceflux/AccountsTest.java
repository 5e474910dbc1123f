package io.onceflux;

import static io.onceflux.Consumers.orders;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.r2dbc.pool.ConnectionPool;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/** However a flux ends, the listener is told of each delivery that was taken what became of it, once. */
class AccountsTest {

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(12);

    enum End {
        COMPLETE,
        NEXT,
        TAKE,
        DISPOSE,
        STOP,
        SOURCE_ERROR
    }

    /** What was told of each delivery, in its order. */
    private static final class Accounts implements ConsumerListener {
        final Map<Delivery<?>, Queue<String>> told = new ConcurrentHashMap<>();

        void note(Delivery<?> delivery, String event) {
            told.computeIfAbsent(delivery, key -> new ConcurrentLinkedQueue<>()).add(event);
        }

        @Override
        public void onOutcome(Delivery<?> delivery, Outcome outcome, Duration elapsed) {
            note(delivery, "outcome");
        }

        @Override
        public void onDropped(Delivery<?> delivery) {
            note(delivery, "dropped");
        }

        @Override
        public void onSettled(Delivery<?> delivery, Settlement settlement) {
            note(delivery, "settled");
        }

        @Override
        public void onSettleFailed(Delivery<?> delivery, Settlement settlement, Throwable error) {
            note(delivery, "settle failed");
        }
    }

    private static final Set<List<String>> RIGHT = Set.of(
            List.of("outcome", "settled"),
            List.of("outcome", "settle failed"),
            List.of("dropped"),
            List.of("dropped", "settled"),
            List.of("dropped", "settle failed"));

    @ParameterizedTest
    @EnumSource(End.class)
    void everyDeliveryEndsInAnOutcomeOrIsDroppedAndNeverBoth(End end) throws Exception {
        for (int round = 0; round < 15; round++) {
            Accounts accounts = new Accounts();
            int batch = 1 + round % 3 * 4;
            int number = round;
            IdempotentConsumer<Order> consumer = orders(Order::note)
                    .maxBatch(batch)
                    .maxInFlight(64)
                    .listener(accounts)
                    .build(pool);
            List<TestDelivery<Order>> taken = new ArrayList<>();
            Flux<Delivery<Order>> source = Flux.range(0, 150).<Delivery<Order>>map(n -> {
                TestDelivery<Order> delivery = TestDelivery.order(end + "-" + number + "-" + n);
                synchronized (taken) {
                    taken.add(delivery);
                }
                return n % 5 == 0
                        ? delivery.answering(Mono.delay(Duration.ofMillis(2)).then())
                        : delivery;
            });
            CountDownLatch ended = new CountDownLatch(1);
            Disposable running = end(end, source, consumer)
                    .doFinally(signal -> ended.countDown())
                    .subscribe(outcome -> {}, error -> {});
            int pause = ThreadLocalRandom.current().nextInt(30);
            if (end == End.DISPOSE) {
                Mono.delay(Duration.ofMillis(pause))
                        .doOnNext(tick -> running.dispose())
                        .then()
                        .block();
            } else if (end == End.STOP) {
                Mono.delay(Duration.ofMillis(pause))
                        .then(consumer.stop(Duration.ofMillis(1 + pause / 5)))
                        .block(Duration.ofSeconds(20));
            }
            assertThat(ended.await(30, TimeUnit.SECONDS)).isTrue();
            await().untilAsserted(() -> {
                synchronized (taken) {
                    assertThat(taken)
                            .allSatisfy(delivery -> assertThat(List.copyOf(
                                            accounts.told.getOrDefault(delivery, new ConcurrentLinkedQueue<>())))
                                    .isIn(RIGHT));
                }
            });
        }
    }

    private static Flux<Outcome> end(End end, Flux<Delivery<Order>> source, IdempotentConsumer<Order> consumer) {
        return switch (end) {
            case NEXT -> source.transform(consumer).next().flux();
            case TAKE ->
                source.transform(consumer).take(1 + ThreadLocalRandom.current().nextInt(100));
            case SOURCE_ERROR ->
                source.take(100)
                        .concatWith(Mono.delay(Duration.ofMillis(5))
                                .then(Mono.error(new IllegalStateException("the source is gone"))))
                        .transform(consumer);
            case STOP, DISPOSE ->
                source.concatWith(Flux.never()).transform(consumer).publishOn(Schedulers.parallel());
            case COMPLETE -> source.transform(consumer);
        };
    }
}
