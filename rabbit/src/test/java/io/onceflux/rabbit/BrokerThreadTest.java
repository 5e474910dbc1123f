package io.onceflux.rabbit;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/** Calls to the broker keep their order, and handing them over holds up no event loop. */
class BrokerThreadTest {

    private final Scheduler thread = BrokerThread.start("broker-thread-test");

    private final Scheduler loops = Schedulers.newParallel("loop", 8, true);

    @AfterEach
    void dispose() {
        loops.dispose();
        thread.dispose();
    }

    private Mono<Void> onThread(Runnable call) {
        return BrokerThread.call(thread, call::run);
    }

    @Test
    void callsAreMadeInTheOrderInWhichTheyCame() {
        List<Integer> made = new ArrayList<>();
        Flux.range(0, 10_000)
                .flatMap(i -> onThread(() -> made.add(i)), Integer.MAX_VALUE)
                .then()
                .block(Duration.ofSeconds(10));
        assertThat(made).isEqualTo(IntStream.range(0, 10_000).boxed().toList());
    }

    @Test
    void manyEventLoopsHandOverAtOnceAndNoneOfThemBlocks() {
        Flux.range(0, 8)
                .flatMap(loop -> Flux.range(0, 5_000)
                        .flatMap(i -> onThread(() -> {}), Integer.MAX_VALUE)
                        .then()
                        .subscribeOn(loops))
                .then()
                .block(Duration.ofSeconds(30));
    }
}
