package io.onceflux;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.Limits.LimitPassedException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import reactor.core.Disposable;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;
import reactor.test.StepVerifier;
import reactor.test.publisher.TestPublisher;

class LimitsTest {

    private static final Duration LONG = Duration.ofMinutes(1);
    private static final Duration SHORT = Duration.ofMillis(50);

    @Test
    void whatComesInTimePassesAsItIs() {
        StepVerifier.create(Limits.within(LONG, Mono.just("value")))
                .expectNext("value")
                .verifyComplete();
        StepVerifier.create(Limits.within(LONG, Mono.empty())).verifyComplete();
        StepVerifier.create(Limits.within(LONG, Mono.error(new TimeoutException("its own"))))
                .verifyErrorMatches(error -> !(error instanceof LimitPassedException));
    }

    @Test
    void whatDoesNotIsCancelledAndFailsOnAThreadThatMayRunUserCode() {
        TestPublisher<String> source = TestPublisher.create();
        List<String> threads = new ArrayList<>();
        StepVerifier.create(Limits.within(SHORT, source.mono())
                        .doOnError(error -> threads.add(Thread.currentThread().getName())))
                .verifyErrorMatches(error ->
                        error instanceof LimitPassedException && "no signal within 50 ms".equals(error.getMessage()));
        source.assertCancelled();
        assertThat(threads).singleElement().asString().startsWith("parallel-");
    }

    @Test
    void aValueIsOnlyAskedForByItsSubscriber() {
        TestPublisher<String> source = TestPublisher.create();
        StepVerifier.create(Limits.within(LONG, source.mono()), 0)
                .expectSubscription()
                .then(() -> source.assertMinRequested(0))
                .thenRequest(1)
                .then(() -> source.emit("value"))
                .expectNext("value")
                .verifyComplete();
    }

    /** The value has won; that its source does not end then is nobody's limit any more. */
    @Test
    void theFirstSignalCounts() {
        Mono<String> endless = Mono.fromDirect(Flux.just("value").concatWith(Flux.never()));
        AtomicInteger errors = new AtomicInteger();
        List<String> values = new CopyOnWriteArrayList<>();
        Disposable running = Limits.within(SHORT, endless).subscribe(values::add, error -> errors.incrementAndGet());
        await().pollDelay(SHORT.multipliedBy(3)).until(() -> values.size() == 1);
        assertThat(errors).hasValue(0);
        running.dispose();
    }

    @Test
    void aCancellationReachesTheSourceAndEndsTheTimer() {
        TestPublisher<String> source = TestPublisher.create();
        AtomicInteger errors = new AtomicInteger();
        Disposable running =
                Limits.within(SHORT, source.mono()).subscribe(value -> {}, error -> errors.incrementAndGet());
        running.dispose();
        source.assertCancelled();
        await().pollDelay(SHORT.multipliedBy(3)).until(() -> errors.get() == 0);
    }

    @Test
    void whoHasGoneBeforeItBeginsSubscribesToNothing() {
        TestPublisher<String> source = TestPublisher.create();
        Limits.within(LONG, source.mono()).subscribe(new BaseSubscriber<>() {
            @Override
            protected void hookOnSubscribe(org.reactivestreams.Subscription subscription) {
                subscription.cancel();
            }
        });
        source.assertWasNotSubscribed();
    }

    /** A source that is subscribed on a thread that is busy has a limit, too. */
    @Test
    void theTimeUntilTheSourceIsSubscribedCounts() {
        Scheduler busy = Schedulers.newBoundedElastic(1, 10, "busy");
        CountDownLatch work = new CountDownLatch(1);
        try {
            var working = busy.schedule(() -> awaitUninterruptibly(work));
            assertThat(working).isNotNull();
            StepVerifier.create(Limits.within(SHORT, Mono.just("value").subscribeOn(busy)))
                    .verifyError(LimitPassedException.class);
        } finally {
            work.countDown();
            busy.dispose();
        }
    }

    private static void awaitUninterruptibly(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Whatever wins, exactly one end is signalled. */
    @Test
    void aRaceHasOneWinner() {
        for (int round = 0; round < 60; round++) {
            AtomicInteger ends = new AtomicInteger();
            Mono<String> atTheSameTime =
                    Mono.delay(Duration.ofMillis(round % 30)).then(Mono.error(new IllegalStateException("late")));
            Disposable running = Limits.within(Duration.ofMillis(10), atTheSameTime)
                    .subscribe(value -> {}, error -> ends.incrementAndGet());
            await().until(() -> ends.get() == 1);
            running.dispose();
            assertThat(ends).hasValue(1);
        }
    }
}
