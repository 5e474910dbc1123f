package io.onceflux;

import static org.assertj.core.api.Assertions.assertThat;

import io.onceflux.services.ForkedJvm;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.pool.ConnectionPoolConfiguration;
import io.r2dbc.spi.ConnectionFactories;
import java.time.Duration;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import reactor.core.publisher.Mono;

/** The consumer's JVM dies with SIGKILL at the worst moments; its successor gets the message again. */
class CrashTest {

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(10);

    @ParameterizedTest
    @CsvSource({"effect, 0", "acknowledgement, 1"})
    void aCrashBeforeTheCommitOrBeforeTheAcknowledgementLeavesOneEffectAfterRedelivery(String moment, int committed) {
        try (ForkedJvm jvm = ForkedJvm.start(HangingConsumer.class, database.r2dbcUrl(), moment)) {
            jvm.awaitLine(line -> line.equals("hanging in " + moment), Duration.ofSeconds(60));
            jvm.kill();
        }
        database.assertNothingLeaked();
        database.assertAppliedOnce(committed);

        TestDelivery<Order> redelivered = TestDelivery.order("1");
        Outcome outcome = Consumers.run(Consumers.loyalty(pool), redelivered);
        assertThat(outcome).isInstanceOf(committed == 1 ? Outcome.Duplicate.class : Outcome.Applied.class);
        assertThat(redelivered.isAcknowledged()).isTrue();
        database.assertAppliedOnce(1);
    }

    /** Handles one message and hangs for ever after its effect, or in its acknowledgement. */
    static final class HangingConsumer {

        private HangingConsumer() {}

        public static void main(String[] args) {
            String moment = args[1];
            ConnectionPool pool =
                    new ConnectionPool(ConnectionPoolConfiguration.builder(ConnectionFactories.get(args[0]))
                            .maxSize(10)
                            .build());
            Effect<Order> effect = (order, db) -> order.apply(db).then(hang("effect", moment));
            TestDelivery<Order> delivery = TestDelivery.order("1").answering(hang("acknowledgement", moment));
            Consumers.orders(effect)
                    .timeLimit(Duration.ofMinutes(5))
                    .settleLimit(Duration.ofMinutes(5))
                    .processBudget(Duration.ofMinutes(5))
                    .build(pool)
                    .process(delivery)
                    .then()
                    .block();
        }

        private static Mono<Void> hang(String here, String moment) {
            return Mono.defer(() -> {
                if (!here.equals(moment)) {
                    return Mono.empty();
                }
                System.out.println("hanging in " + here);
                return Mono.never();
            });
        }
    }
}
