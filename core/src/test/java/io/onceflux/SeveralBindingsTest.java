package io.onceflux;

import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.policy;
import static io.onceflux.Consumers.run;
import static org.assertj.core.api.Assertions.assertThat;

import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Result;
import io.r2dbc.spi.Statement;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** The driver sends a statement for each of its bindings when the one before is answered: until its end, more may come. */
class SeveralBindingsTest {

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(6);

    private static Statement three(Connection connection) {
        return connection
                .createStatement("INSERT INTO point_ledger VALUES ($1, 'x', 1)")
                .bind(0, "a")
                .add()
                .bind(0, "b")
                .add()
                .bind(0, "c");
    }

    private Outcome attempt(Effect<Order> effect) {
        return run(
                orders(effect)
                        .lockTimeout(Duration.ofMillis(200))
                        .timeLimit(Duration.ofMillis(600))
                        .failurePolicy(policy().maxAttempts(1).build())
                        .build(pool),
                TestDelivery.order("1"));
    }

    @Test
    void allAreExecutedInTheTransaction() {
        Outcome outcome = attempt((order, db) -> db.inConnectionMany(
                connection -> Flux.<Result>from(three(connection).execute()).concatMap(Result::getRowsUpdated)));
        assertThat(outcome).isInstanceOf(Outcome.Applied.class);
        assertThat(database.rows("SELECT DISTINCT xmin::text FROM point_ledger"))
                .hasSize(1);
        assertThat(database.effects()).isEqualTo(3);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3})
    void aResultThatIsReadOnceTheEffectWasCutWritesNothing(int which) {
        CompletableFuture<Result> kept = new CompletableFuture<>();
        AtomicInteger results = new AtomicInteger();
        Outcome outcome = attempt((order, db) -> db.inConnectionMany(connection -> Flux.<Result>from(
                        three(connection).execute())
                .concatMap(result -> {
                    if (results.incrementAndGet() < which) {
                        return result.getRowsUpdated();
                    }
                    kept.complete(result);
                    return Mono.never();
                })));
        assertThat(outcome).isInstanceOf(Outcome.Failed.class);

        assertThat(Flux.from(kept.join().getRowsUpdated())
                        .onErrorResume(refused -> Mono.empty())
                        .timeout(Duration.ofSeconds(2), Mono.empty())
                        .collectList()
                        .block(Duration.ofSeconds(10)))
                .as("rows that were written later")
                .isEmpty();
        assertThat(database.effects()).isZero();
        database.assertNothingLeaked();
    }

    @Test
    void anEffectThatCompletesBetweenTwoBindingsIsNotCommitted() {
        CompletableFuture<Void> first = new CompletableFuture<>();
        CompletableFuture<Void> later = new CompletableFuture<>();
        Effect<Order> effect = (order, db) -> Mono.fromFuture(() -> {
            var leftBehind = db.inConnectionMany(connection -> Flux.<Result>from(
                                    three(connection).execute())
                            .concatMap(result -> Flux.from(result.getRowsUpdated())
                                    .doOnNext(rows -> first.complete(null))
                                    .then(Mono.fromFuture(later))))
                    .subscribe(rows -> {}, refused -> {});
            return leftBehind.isDisposed() ? new CompletableFuture<Void>() : first;
        });
        assertThat(attempt(effect)).isInstanceOf(Outcome.Failed.class);
        later.complete(null);
        database.assertNothingLeaked();
        assertThat(database.effects()).isZero();
        assertThat(database.claims()).isZero();
    }
}
