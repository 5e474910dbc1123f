package io.onceflux;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

class LifecycleTest {

    private static final Duration LIMIT = Duration.ofSeconds(10);

    @Test
    void whatBeginsAfterTheStopIsRefusedAndNotWaitedFor() {
        Lifecycle lifecycle = new Lifecycle();
        assertThat(lifecycle.begin()).isTrue();
        lifecycle.ended();
        lifecycle.stop(LIMIT).block(LIMIT);

        assertThat(lifecycle.begin()).isFalse();
        lifecycle.stop(LIMIT).block(LIMIT);
    }

    @Test
    void whatBeginsDuringTheStopIsEitherRefusedOrWaitedFor() {
        for (int round = 0; round < 2_000; round++) {
            Lifecycle lifecycle = new Lifecycle();
            CompletableFuture<Boolean> began = Mono.fromCallable(lifecycle::begin)
                    .subscribeOn(Schedulers.parallel())
                    .toFuture();
            CompletableFuture<Void> stopped =
                    lifecycle.stop(LIMIT).subscribeOn(Schedulers.parallel()).toFuture();
            if (began.join()) {
                assertThat(stopped).isNotDone();
                lifecycle.ended();
            }
            assertThat(stopped).succeedsWithin(LIMIT);
        }
    }
}
