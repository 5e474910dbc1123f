package io.onceflux;

import static io.onceflux.Consumers.flux;
import static io.onceflux.Consumers.loyalty;
import static io.onceflux.Consumers.run;
import static org.assertj.core.api.Assertions.assertThat;

import io.r2dbc.pool.ConnectionPool;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.r2dbc.connection.R2dbcTransactionManager;
import org.springframework.r2dbc.core.DatabaseClient;
import org.springframework.transaction.reactive.TransactionalOperator;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.test.StepVerifier;

/** A caller with a transaction of its own: claims may join it, and nothing else does. */
class CallersTransactionTest {

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(10);
    private final TransactionalOperator callers = TransactionalOperator.create(new R2dbcTransactionManager(pool));

    @Test
    void aClaimWithoutATransactionIsRefused() {
        StepVerifier.create(loyalty(pool).claimInTransaction("1"))
                .expectErrorSatisfies(error -> assertThat(error)
                        .isInstanceOf(IllegalStateException.class)
                        .hasMessageContaining("without one the claim would commit alone"))
                .verify();
        database.assertAppliedOnce(0);
    }

    @Test
    void aClaimInTheCallersTransactionCommitsAndRollsBackWithIt() {
        IdempotentConsumer<Order> consumer = loyalty(pool);
        StepVerifier.create(callers.transactional(
                        consumer.claimInTransaction("1").then(Mono.error(new IllegalStateException("caller fails")))))
                .expectErrorMessage("caller fails")
                .verify();
        database.assertAppliedOnce(0);

        DatabaseClient db = DatabaseClient.create(pool);
        Mono<Boolean> claimAndWork = callers.transactional(consumer.claimInTransaction("1")
                .flatMap(claimed -> (claimed ? Order.of("1").note(db) : Mono.<Void>empty()).thenReturn(claimed)));
        assertThat(claimAndWork.block()).isTrue();
        assertThat(claimAndWork.block()).isFalse();
        database.assertAppliedOnce(1);
        assertThat(run(consumer, TestDelivery.order("1"))).isInstanceOf(Outcome.Duplicate.class);
    }

    @Test
    void aClaimInATransactionOnAnotherConnectionFactoryIsRefused() {
        TransactionalOperator elsewhere = TransactionalOperator.create(new R2dbcTransactionManager(database.pool(2)));
        StepVerifier.create(elsewhere.transactional(loyalty(pool).claimInTransaction("1")))
                .expectErrorMessage("the transaction is on another ConnectionFactory than the consumer's")
                .verify();
        database.assertAppliedOnce(0);
    }

    @Test
    void processInsideATransactionIsRefused() {
        StepVerifier.create(callers.transactional(loyalty(pool).process(TestDelivery.order("1"))))
                .expectErrorSatisfies(
                        error -> assertThat(error).hasMessageContaining("process must not run inside a transaction"))
                .verify();
        database.assertAppliedOnce(0);
    }

    @Test
    void aFluxInsideACallersTransactionDoesNotJoinIt() {
        List<TestDelivery<Order>> deliveries = TestDelivery.orders("t", 20);
        Flux<Outcome> outcomes = flux(deliveries).transform(loyalty(pool));
        StepVerifier.create(callers.transactional(
                        outcomes.collectList().then(Mono.error(new IllegalStateException("caller fails")))))
                .expectErrorMessage("caller fails")
                .verify();

        assertThat(deliveries).allMatch(TestDelivery::isAcknowledged);
        database.assertAppliedOnce(20);
    }
}
