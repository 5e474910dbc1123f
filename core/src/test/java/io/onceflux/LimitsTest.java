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
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import reactor.core.Disposable;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;
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
                        error instanceof LimitPassedException && "no answer within 50 ms".equals(error.getMessage()));
        source.assertCancelled();
        assertThat(threads).singleElement().asString().startsWith("parallel-");
    }

    @Test
    void aValueIsOnlyAskedForByItsSubscriber() {
        TestPublisher<String> source = TestPublisher.create();
        StepVerifier.create(Limits.within(LONG, source.mono()), 0)
                .expectSubscription()
                .then(() -> source.assertMaxRequested(0))
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

    /** The limit has struck, but what carries it out is late: what comes until then is in time, such as a connection. */
    @Test
    void whatComesBeforeTheLimitIsCarriedOutIsNotLost() {
        AtomicBoolean isBusy = new AtomicBoolean(true);
        Sinks.One<String> source = Sinks.one();
        List<String> ends = new CopyOnWriteArrayList<>();
        List<Disposable> busy = new ArrayList<>();
        try {
            for (int thread = 0; thread < Schedulers.DEFAULT_POOL_SIZE; thread++) {
                busy.add(Schedulers.parallel().schedule(() -> {
                    long spins = 0;
                    while (isBusy.get()) {
                        spins++; // It may not block, not even in onSpinWait.
                    }
                    assertThat(spins).isNotNegative();
                }));
            }
            Disposable running = Limits.within(SHORT, source.asMono()).subscribe(ends::add, error -> ends.add("limit"));
            await().pollDelay(SHORT.multipliedBy(4)).until(ends::isEmpty);
            assertThat(source.tryEmitValue("value")).isEqualTo(Sinks.EmitResult.OK);
            assertThat(ends).containsExactly("value");
            isBusy.set(false);
            await().pollDelay(SHORT).until(() -> ends.size() == 1);
            running.dispose();
        } finally {
            isBusy.set(false);
            busy.forEach(Disposable::dispose);
        }
    }

    /** Whatever wins, exactly one end is signalled: also a moment later. */
    @Test
    void aRaceHasOneWinner() {
        List<AtomicInteger> rounds = new ArrayList<>();
        for (int round = 0; round < 200; round++) {
            AtomicInteger ends = new AtomicInteger();
            rounds.add(ends);
            Duration about = Duration.ofMillis(10 + round % 40);
            Mono<String> atTheSameTime = round % 2 == 0
                    ? Mono.delay(about).map(String::valueOf)
                    : Mono.delay(about).then(Mono.error(new IllegalStateException("late")));
            var unused = Limits.within(Duration.ofMillis(20), atTheSameTime)
                    .doOnTerminate(ends::incrementAndGet)
                    .subscribe(value -> {}, error -> {});
        }
        await().until(() -> rounds.stream().allMatch(ends -> ends.get() > 0));
        await().pollDelay(SHORT).until(() -> true);
        assertThat(rounds).allMatch(ends -> ends.get() == 1);
    }
}
