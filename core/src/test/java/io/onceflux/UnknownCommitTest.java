package io.onceflux;

import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.run;
import static org.assertj.core.api.Assertions.assertThat;

import io.r2dbc.pool.ConnectionPool;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;

/** The connection dies while COMMIT is under way: nobody knows whether it took place, but the claim does. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class UnknownCommitTest {

    private final Database database = Database.create();
    private final CommitCuttingProxy proxy = new CommitCuttingProxy(database.host(), database.port());
    private final ConnectionPool pool =
            database.pool(10, database.configuration().host("127.0.0.1").port(proxy.port()));

    @BeforeEach
    void empty() {
        database.empty();
    }

    @AfterEach
    void nothingLeaked() {
        database.assertNothingLeaked();
    }

    @AfterAll
    void close() {
        proxy.close();
        database.close();
    }

    @Test
    void aCommitThatTookPlaceIsFoundAsADuplicateAndTheMessageIsAcknowledged() {
        RecordingListener listener = new RecordingListener();
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
        RecordingListener listener = new RecordingListener();
        proxy.toCutBefore.set(1);
        TestDelivery<Order> delivery = TestDelivery.order("1");
        Outcome outcome = run(orders(Order::apply).listener(listener).build(pool), delivery);

        assertThat(outcome).isInstanceOf(Outcome.Applied.class);
        assertThat(listener.unknownCommits).hasSize(1);
        assertThat(delivery.isAcknowledged()).isTrue();
        database.assertAppliedOnce(1);
    }

    @Test
    void manyUnknownCommitsUnderLoadLoseNothingAndDoubleNothing() {
        RecordingListener listener = new RecordingListener();
        int before = proxy.cut.get();
        List<TestDelivery<Order>> deliveries = TestDelivery.orders("u", 60);
        proxy.toCutAfter.set(10);
        proxy.toCutBefore.set(10);
        List<Outcome> outcomes = run(orders(Order::apply).listener(listener).build(pool), deliveries);

        assertThat(outcomes).hasSize(60).noneMatch(Outcome.Failed.class::isInstance);
        assertThat(proxy.cut.get() - before).isEqualTo(20);
        assertThat(listener.unknownCommits).hasSize(20);
        assertThat(deliveries).allMatch(TestDelivery::isAcknowledged);
        database.assertAppliedOnce(60);
    }
}
