package io.onceflux;

import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.policy;
import static io.onceflux.Consumers.run;
import static io.onceflux.Consumers.start;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.r2dbc.pool.ConnectionPool;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import reactor.core.publisher.Flux;

/** A set-up that was fit at the start and is broken while messages come says nothing about the messages. */
class UnfitLaterTest {

    private static final Duration LIMIT = Duration.ofSeconds(30);

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(10);
    private final RecordingListener listener = new RecordingListener();

    @AfterEach
    void mend() {
        database.run("DROP FUNCTION IF EXISTS refuse CASCADE");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            its primary key is gone       | ALTER TABLE processed_messages DROP CONSTRAINT processed_messages_pkey | ALTER TABLE processed_messages ADD PRIMARY KEY (consumer, message_key)
            it wants another column       | ALTER TABLE processed_messages ADD COLUMN tenant text NOT NULL DEFAULT 'x'; ALTER TABLE processed_messages ALTER COLUMN tenant DROP DEFAULT | ALTER TABLE processed_messages DROP COLUMN tenant
            a trigger of it refuses       | CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION $$no$$; END'; CREATE TRIGGER refuse BEFORE INSERT ON processed_messages FOR EACH ROW EXECUTE FUNCTION refuse() | DROP TRIGGER refuse ON processed_messages
            a check of it refuses all     | ALTER TABLE processed_messages ADD CONSTRAINT none CHECK (false) NOT VALID | ALTER TABLE processed_messages DROP CONSTRAINT none
            """)
    void messagesAreHeldWhileTheClaimTableRefusesEveryClaim(String how, String broken, String mended) {
        IdempotentConsumer<Order> consumer =
                orders(Order::apply).listener(listener).build(pool);
        run(consumer, TestDelivery.order("first"));
        database.run(broken);
        List<TestDelivery<Order>> deliveries = TestDelivery.orders("o", 30);
        var outcomes = start(consumer, deliveries);

        await().until(() -> listener.held.contains(FailureKind.BROKEN_SETUP));
        assertThat(deliveries).flatMap(TestDelivery::settlements).isEmpty();
        database.run(mended);

        assertThat(outcomes).succeedsWithin(LIMIT);
        assertThat(deliveries).allMatch(TestDelivery::isAcknowledged);
        database.assertAppliedOnce(31);
    }

    @Test
    void aCheckThatRefusesOneKeyIsThatMessagesFault() {
        database.run("ALTER TABLE processed_messages ADD CONSTRAINT no_bad CHECK (message_key <> 'bad')");
        try {
            TestDelivery<Order> bad = TestDelivery.order("bad");
            run(orders(Order::apply).listener(listener).build(pool), List.of(TestDelivery.order("good"), bad));

            assertThat(bad.isDeadLettered()).isTrue();
            assertThat(listener.held).isEmpty();
            database.assertAppliedOnce(1);
        } finally {
            database.run("ALTER TABLE processed_messages DROP CONSTRAINT no_bad");
        }
    }

    @Test
    void aDecoderThatADeploymentBrokeIsAWarningAndHoldsUpNoGoodMessage() {
        List<TestDelivery<Order>> deliveries = TestDelivery.orders("o", 500);
        IdempotentConsumer<Order> consumer =
                orders(Order::apply).listener(listener).build(pool);
        Flux.<Delivery<Order>>fromIterable(deliveries)
                .map(Delivery.<Order, Order>decoding(order -> {
                    if (order.id().equals("o499")) {
                        return order;
                    }
                    throw new IllegalArgumentException("unknown field");
                }))
                .transform(consumer)
                .then()
                .block(LIMIT);

        assertThat(listener.warnings).singleElement().asString().contains("100 messages in a row", "unknown field");
        assertThat(deliveries).filteredOn(TestDelivery::isDeadLettered).hasSize(499);
        database.assertAppliedOnce(1);
    }

    @Test
    void aServiceWithOneDeadServerOfTwoLosesNothing() {
        EverySecondFails flaky = new EverySecondFails(pool);
        IdempotentConsumer<Order> consumer = orders(Order::apply)
                .lanes(1)
                .failurePolicy(policy().quarantineAfter(3).build())
                .build(flaky);
        run(consumer, TestDelivery.order("first"));
        flaky.broken.set(true);
        List<TestDelivery<Order>> deliveries = TestDelivery.orders("o", 10);
        run(consumer, deliveries);

        assertThat(deliveries).allMatch(TestDelivery::isAcknowledged);
        database.assertAppliedOnce(11);
    }
}
