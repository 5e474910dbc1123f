package io.onceflux;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.r2dbc.pool.ConnectionPool;
import java.time.Duration;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import reactor.core.publisher.Mono;
import reactor.test.StepVerifier;
import reactor.test.publisher.TestPublisher;

/** A connection on its way from the pool into a transaction has exactly one owner at every moment. */
class HandoverTest {

    private static final Duration LIMIT = Duration.ofSeconds(10);

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final ConnectionPool pool = fresh.database().pool(1);
    private final TestPublisher<AttemptConnection> source = TestPublisher.create();
    private final Handover handover = new Handover();

    private AttemptConnection borrowed() {
        return new AttemptConnection(Objects.requireNonNull(pool.create().block(LIMIT)), LIMIT);
    }

    @Test
    void aCallerWhoGoesBeforeThePoolHasEmittedTellsThePool() {
        StepVerifier.create(handover.take(source.mono())).thenCancel().verify(LIMIT);
        source.assertCancelled();
    }

    @Test
    void aCallerWhoGoesBeforeThePoolIsSubscribedTellsThePoolAllTheSame() {
        handover.abandon().block(LIMIT);
        StepVerifier.create(handover.take(source.mono())).thenCancel().verify(LIMIT);
        source.assertCancelled();
    }

    @Test
    void whatThePoolEmitsToACallerWhoHasGoneGoesBack() {
        AttemptConnection late = borrowed();
        StepVerifier.create(handover.take(source.mono()))
                .then(() -> handover.abandon().block(LIMIT))
                .then(() -> source.next(late))
                .thenCancel()
                .verify(LIMIT);
        source.assertCancelled();
        late.close().block(LIMIT);
    }

    @Test
    void aCallerWhoGoesAfterThePoolHasEmittedClosesTheConnectionHimselfAndOnce() {
        AttemptConnection connection = borrowed();
        StepVerifier.create(handover.take(source.mono().concatWith(Mono.never()).next()))
                .then(() -> source.next(connection))
                .expectNext(connection)
                .thenCancel()
                .verify(LIMIT);
        handover.abandon().block(LIMIT);

        assertThat(pool.getMetrics().orElseThrow().acquiredSize()).isZero();
        assertThatIllegalStateException().isThrownBy(() -> handover.complete(connection));
    }

    @Test
    void aTransactionThatHasBegunOwnsItsConnection() {
        AttemptConnection connection = borrowed();
        StepVerifier.create(handover.take(source.mono()))
                .then(() -> source.emit(connection))
                .expectNext(connection)
                .verifyComplete();
        handover.complete(connection);
        handover.abandon().block(LIMIT);

        assertThat(pool.getMetrics().orElseThrow().acquiredSize()).isOne();
        connection.close().block(LIMIT);
    }
}
