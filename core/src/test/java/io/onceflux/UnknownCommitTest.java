package io.onceflux;

import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.run;
import static org.assertj.core.api.Assertions.assertThat;

import io.r2dbc.pool.ConnectionPool;
import java.util.List;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** The connection dies while COMMIT is under way: nobody knows whether it took place, but the claim does. */
class UnknownCommitTest {

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();

    @AutoClose
    private final CommitCuttingProxy proxy = new CommitCuttingProxy(database.host(), database.port());

    private final ConnectionPool pool =
            database.pool(10, database.configuration().host("127.0.0.1").port(proxy.port()));
    private final RecordingListener listener = new RecordingListener();

    @Test
    void aCommitThatTookPlaceIsFoundAsADuplicateAndTheMessageIsAcknowledged() {
        proxy.toCutAfter.set(1);
        TestDelivery<Order> delivery = TestDelivery.order("1");
        Outcome outcome = run(orders(Order::apply).listener(listener).build(pool), delivery);

        assertThat(outcome).isInstanceOf(Outcome.Duplicate.class);
        assertThat(listener.unknownCommits).hasSize(1);
        assertThat(delivery.isAcknowledged()).isTrue();
        database.assertAppliedOnce(1);
    }

    @Test
    void aCommitThatDidNotTakePlaceIsMadeGood() {
        proxy.toCutBefore.set(1);
        TestDelivery<Order> delivery = TestDelivery.order("1");
        Outcome outcome = run(orders(Order::apply).listener(listener).build(pool), delivery);

        assertThat(outcome).isInstanceOf(Outcome.Applied.class);
        assertThat(listener.unknownCommits).hasSize(1);
        assertThat(delivery.isAcknowledged()).isTrue();
        database.assertAppliedOnce(1);
    }

    @Test
    void aUserWhoCallsEveryErrorPermanentIsNotAskedAboutIt() {
        proxy.toCutAfter.set(1);
        TestDelivery<Order> delivery = TestDelivery.order("1");
        Outcome outcome = run(
                orders(Order::apply)
                        .failurePolicy(Consumers.policy()
                                .classifying(error -> FailureKind.PERMANENT)
                                .build())
                        .build(pool),
                delivery);
        assertThat(outcome).isInstanceOf(Outcome.Duplicate.class);
        assertThat(delivery.isAcknowledged()).isTrue();
        database.assertAppliedOnce(1);
    }

    @Test
    void manyUnknownCommitsUnderLoadLoseNothingAndDoubleNothing() {
        List<TestDelivery<Order>> deliveries = TestDelivery.orders("u", 60);
        proxy.toCutAfter.set(10);
        proxy.toCutBefore.set(10);
        List<Outcome> outcomes = run(orders(Order::apply).listener(listener).build(pool), deliveries);

        assertThat(outcomes).hasSize(60).noneMatch(Outcome.Failed.class::isInstance);
        assertThat(proxy.cut.get()).isEqualTo(20);
        assertThat(listener.unknownCommits).hasSize(20);
        assertThat(deliveries).allMatch(TestDelivery::isAcknowledged);
        database.assertAppliedOnce(60);
    }
}
