package io.onceflux.examples.loyalty;

import static io.onceflux.examples.loyalty.Shop.LIMIT;
import static io.onceflux.examples.loyalty.Shop.order;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.Outcome;
import io.onceflux.services.ForkedJvm;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;
import reactor.core.Disposable;

/** The service as a process that is told to end while it is at work. */
class LoyaltyApplicationTest {

    private static final int ORDERS = 2_000;

    @Test
    void onSigtermWhatIsAtWorkIsCommittedAndAcknowledgedAndTheRestComesOnceMore() throws Exception {
        try (RabbitShop shop = new RabbitShop()) {
            List<Outcome> outcomes = new CopyOnWriteArrayList<>();
            long credited;
            shop.run("""
                    CREATE FUNCTION take_a_while() RETURNS trigger LANGUAGE plpgsql AS $$
                    BEGIN PERFORM pg_sleep(0.02); RETURN NEW; END $$""");
            shop.run("CREATE TRIGGER slow BEFORE INSERT ON point_ledger FOR EACH ROW EXECUTE FUNCTION take_a_while()");
            try (ForkedJvm application = ForkedJvm.start(LoyaltyApplication.class, shop.settings())) {
                shop.awaitConsumer();
                for (int n = 0; n < ORDERS; n++) {
                    shop.publish(order("A-" + n, n % 2 == 0 ? "C-1" : "C-2", 1));
                }
                await().atMost(LIMIT).until(() -> shop.ledgerRows() > 100);
                application.terminate();
                assertThat(application.exitCode()).isEqualTo(143);
                credited = shop.ledgerRows();
            }
            assertThat(credited).as("it ended in the middle").isBetween(101L, ORDERS - 1L);
            assertThat(shop.claims()).isEqualTo(credited);
            await().atMost(LIMIT).until(() -> shop.waiting() == ORDERS - credited);

            shop.run("DROP TRIGGER slow ON point_ledger");
            LoyaltyService next = new LoyaltyService(shop.orders(), shop.pool);
            Disposable running = next.run().subscribe(outcomes::add);
            await().atMost(LIMIT).until(() -> outcomes.size() == ORDERS - credited);
            next.stop().block(LIMIT);
            assertThat(running.isDisposed()).isTrue();
            assertThat(outcomes)
                    .as("nothing that was acknowledged came again")
                    .allMatch(Outcome.Applied.class::isInstance);
            assertThat(shop.waiting()).isZero();
            assertThat(shop.points("C-1") + shop.points("C-2")).isEqualTo(ORDERS);
            assertThat(shop.ledgerRows()).isEqualTo(ORDERS);
        }
    }
}
