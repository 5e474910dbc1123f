package io.onceflux;

import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.policy;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** A delivery of a user's own source that throws instead of answering harms no other, and not itself. */
class ThrowingSourceTest {

    private static final Duration LIMIT = Duration.ofSeconds(30);

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();

    private static List<Outcome> run(IdempotentConsumer<Order> consumer, List<? extends Delivery<Order>> deliveries) {
        return Objects.requireNonNull(Flux.<Delivery<Order>>fromIterable(deliveries)
                .transform(consumer)
                .collectList()
                .block(LIMIT));
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 10})
    void messagesWhoseSourceThrowsAreAppliedAndAcknowledgedAndThatIsLoggedOnceForEach(int maxBatch) {
        database.empty();
        List<ThrowingDelivery> deliveries =
                List.of(new ThrowingDelivery("1"), new ThrowingDelivery("2"), new ThrowingDelivery("3"));
        IdempotentConsumer<Order> consumer =
                Consumers.batches(maxBatch, Order::apply).build(database.pool(5));

        String logged = logged(
                3, () -> assertThat(run(consumer, deliveries)).hasSize(3).hasOnlyElementsOfType(Outcome.Applied.class));

        assertThat(deliveries)
                .allSatisfy(delivery -> assertThat(delivery.settlements).hasValue(1));
        for (String call : List.of("isCurrent", "handlingBegins", "handlingEnded")) {
            for (String id : List.of("1", "2", "3")) {
                assertThat(logged.lines())
                        .filteredOn(
                                line -> line.contains(call + " of the delivery of message loyalty/" + id + " threw"))
                        .hasSize(1);
            }
        }
        database.assertAppliedOnce(3);
    }

    @Test
    void aDeadLetterThatCannotBeStoredAtOnceIsTriedAgainAlthoughItsSourceThrows() {
        ThrowingDelivery delivery = new ThrowingDelivery("1") {
            @Override
            public Mono<Void> settle(Settlement settlement) {
                return super.settle(settlement)
                        .then(Mono.defer(() -> settlements.get() < 4
                                ? Mono.error(new IllegalStateException("not now"))
                                : Mono.empty()));
            }
        };
        IdempotentConsumer<Order> consumer = orders((order, db) -> Mono.error(new PermanentFailure("no")))
                .failurePolicy(policy().build())
                .build(database.pool(5));

        String logged =
                logged(1, () -> assertThat(run(consumer, List.of(delivery))).hasSize(1));

        assertThat(delivery.settlements).hasValue(4);
        assertThat(logged.lines())
                .filteredOn(line -> line.contains("isCurrent of the delivery of message loyalty/1 threw"))
                .hasSize(1);
    }

    /** The log, when so many deliveries have been told that nothing more is done with them, which is after their outcomes. */
    private static String logged(int deliveries, Runnable work) {
        PrintStream before = System.err;
        ByteArrayOutputStream written = new ByteArrayOutputStream();
        System.setErr(new PrintStream(written, true, StandardCharsets.UTF_8));
        try {
            work.run();
            await().until(() -> written.toString(StandardCharsets.UTF_8)
                            .lines()
                            .filter(line -> line.contains("handlingEnded of"))
                            .count()
                    == deliveries);
        } finally {
            System.setErr(before);
        }
        return written.toString(StandardCharsets.UTF_8);
    }

    private static class ThrowingDelivery implements Delivery<Order> {

        final AtomicInteger settlements = new AtomicInteger();
        private final String id;

        ThrowingDelivery(String id) {
            this.id = id;
        }

        @Override
        public Order payload() {
            return Order.of(id);
        }

        @Override
        public String id() {
            return id;
        }

        @Override
        public Mono<Void> settle(Settlement settlement) {
            return Mono.fromRunnable(settlements::incrementAndGet);
        }

        @Override
        public boolean isCurrent() {
            throw new StackOverflowError("not current?");
        }

        @Override
        public void handlingBegins() {
            throw new IllegalStateException("begins");
        }

        @Override
        public void handlingEnded() {
            throw new StackOverflowError("ended");
        }
    }
}
