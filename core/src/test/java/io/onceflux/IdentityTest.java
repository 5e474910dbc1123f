package io.onceflux;

import static io.onceflux.Consumers.failureOf;
import static io.onceflux.Consumers.loyalty;
import static io.onceflux.Consumers.named;
import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.run;
import static org.assertj.core.api.Assertions.assertThat;

import io.r2dbc.pool.ConnectionPool;
import java.text.Normalizer;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

class IdentityTest {

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(10);
    private final RecordingListener listener = new RecordingListener();

    @Test
    void idsOfThreeThousandRandomCharactersAreAppliedOnceEachAndStayDistinct() {
        String start = MessageKeyTest.random(2_000, 1);
        String one = start + MessageKeyTest.random(1_000, 2);
        String other = start + MessageKeyTest.random(1_000, 3);
        List<TestDelivery<Order>> deliveries = new ArrayList<>();
        for (String id : List.of(one, other, one)) {
            deliveries.add(new TestDelivery<>(id, new Order(id.substring(2_900), "c", 1)));
        }
        run(orders(Order::apply).listener(listener).build(pool), deliveries);

        assertThat(listener.count(Outcome.Applied.class)).isEqualTo(2);
        assertThat(listener.count(Outcome.Duplicate.class)).isEqualTo(1);
        assertThat(listener.retries).isEmpty();
        database.assertAppliedOnce(2);
    }

    @Test
    void ofFiftyMessagesTheOneWithANulInItsKeyIsDeadLetteredAndTheOthersApplied() {
        List<TestDelivery<Order>> deliveries = new ArrayList<>(TestDelivery.orders("n", 49));
        TestDelivery<Order> withNul = TestDelivery.order("a\0b");
        deliveries.add(20, withNul);
        run(orders(Order::apply).listener(listener).build(pool), deliveries);

        assertThat(withNul.isDeadLettered()).isTrue();
        assertThat(deliveries).filteredOn(TestDelivery::isAcknowledged).hasSize(49);
        assertThat(listener.retries).isEmpty();
        database.assertAppliedOnce(49);
    }

    @Test
    void aPayloadThatPostgresCannotStoreIsDeadLetteredWithoutARetry() {
        TestDelivery<Order> delivery = new TestDelivery<>("1", new Order("a\0b", "c", 1));
        Failure failure = failureOf(run(orders(Order::apply).listener(listener).build(pool), delivery));

        assertThat(failure.kind()).isEqualTo(FailureKind.PERMANENT);
        assertThat(failure.sqlState()).isEqualTo("22021");
        assertThat(failure.attempts()).isEqualTo(1);
        database.assertAppliedOnce(0);
    }

    @Test
    void messagesWithoutAUsableIdAreDeadLetteredWithAReasonEach() {
        List<TestDelivery<Order>> deliveries = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            deliveries.add(new TestDelivery<>(null, Order.of("null-" + i)));
            deliveries.add(new TestDelivery<>("", Order.of("empty-" + i)));
            deliveries.add(new TestDelivery<>("   ", Order.of("blank-" + i)));
        }
        List<Outcome> outcomes = run(loyalty(pool), deliveries);

        assertThat(deliveries).allMatch(TestDelivery::isDeadLettered);
        assertThat(outcomes.stream().map(outcome -> failureOf(outcome).reason()))
                .containsExactlyInAnyOrder(
                        "the message has no id",
                        "the message has no id",
                        "the message has no id",
                        "the message id is empty",
                        "the message id is empty",
                        "the message id is empty",
                        "the message id is blank",
                        "the message id is blank",
                        "the message id is blank");
        assertThat(outcomes).allSatisfy(outcome -> {
            assertThat(outcome.key()).isNull();
            assertThat(failureOf(outcome).kind()).isEqualTo(FailureKind.PERMANENT);
            assertThat(failureOf(outcome).attempts()).isZero();
        });
        database.assertAppliedOnce(0);
    }

    @Test
    void messagesWithoutAUsableIdNeverRaiseTheAlarm() {
        List<TestDelivery<Order>> deliveries = new ArrayList<>();
        for (int i = 0; i < 150; i++) {
            deliveries.add(new TestDelivery<>(null, Order.of("n" + i)));
        }
        deliveries.add(TestDelivery.order("canary"));
        run(orders(Order::apply).listener(listener).build(pool), deliveries);

        assertThat(listener.held).isEmpty();
        database.assertAppliedOnce(1);
    }

    @Test
    void theSameIdForTwoConsumersIsAppliedByEach() {
        run(named("loyalty", Order::apply).build(pool), TestDelivery.order("1"));
        run(named("billing", Order::apply).build(pool), TestDelivery.order("1"));
        assertThat(database.effectsOf("1")).isEqualTo(2);
    }

    @Test
    void consumerAndIdDoNotRunIntoEachOther() {
        String[][] pairs = {{"a:b", "c"}, {"a", "b:c"}, {"t-1", "1"}, {"t", "11"}, {"t", "-11"}};
        for (String[] pair : pairs) {
            TestDelivery<Order> delivery = new TestDelivery<>(pair[1], Order.of(String.join("|", pair)));
            assertThat(run(named(pair[0], Order::apply).build(pool), delivery)).isInstanceOf(Outcome.Applied.class);
        }
        database.assertAppliedOnce(5);
    }

    @Test
    void idsAreComparedByteByByteInTheTableToo() {
        List<TestDelivery<Order>> deliveries = List.of(
                TestDelivery.order(Normalizer.normalize("café", Normalizer.Form.NFC)),
                TestDelivery.order(Normalizer.normalize("café", Normalizer.Form.NFD)),
                TestDelivery.order("Key"),
                TestDelivery.order("key"),
                TestDelivery.order("k"),
                TestDelivery.order("k "),
                TestDelivery.order(" k"),
                TestDelivery.order("smile \uD83D\uDE00"),
                TestDelivery.order("{a,\"b\"}\\"),
                TestDelivery.order("NULL"));
        assertThat(run(loyalty(pool), deliveries)).allMatch(Outcome.Applied.class::isInstance);
        assertThat(database.texts("SELECT message_key FROM processed_messages"))
                .containsExactlyInAnyOrderElementsOf(
                        deliveries.stream().map(TestDelivery::id).toList());
        database.assertAppliedOnce(10);
    }

    @Test
    void theNameOfTheConsumerMayHoldAnything() {
        String name = "it's; DROP TABLE \"x\" -- ü";
        assertThat(run(named(name, Order::apply).build(pool), TestDelivery.order("1")))
                .isInstanceOf(Outcome.Applied.class);
        assertThat(run(named(name, Order::apply).build(pool), TestDelivery.order("1")))
                .isInstanceOf(Outcome.Duplicate.class);
    }
}
