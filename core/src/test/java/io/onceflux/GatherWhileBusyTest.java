package io.onceflux;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.GatherWhileBusy.Batch;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.stream.IntStream;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.reactivestreams.Subscription;
import reactor.core.Disposable;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;
import reactor.core.scheduler.Schedulers;
import reactor.test.publisher.TestPublisher;

class GatherWhileBusyTest {

    private static final Duration LIMIT = Duration.ofSeconds(20);

    private final TestPublisher<Integer> source = TestPublisher.create();
    private final Sinks.Empty<Void> stop = Sinks.empty();
    private final List<Integer> discarded = new ArrayList<>();
    private Lanes watched = new Lanes(1);

    /** The lane of a number is its last digit. */
    private Seen subscribe(int lanes, int maxBatch, int maxInFlight) {
        Seen seen = new Seen();
        watched = new Lanes(lanes);
        new GatherWhileBusy<>(source.flux(), n -> n % 10, watched, maxBatch, maxInFlight, stop.asMono(), discarded::add)
                .subscribe(seen);
        return seen;
    }

    private static void assertIdle(Lanes lanes) {
        for (int lane = 0; lane < lanes.count(); lane++) {
            assertThat(lanes.queued(lane)).as("queued in lane %d", lane).isZero();
            assertThat(lanes.inFlight(lane)).as("in flight in lane %d", lane).isZero();
        }
    }

    @Test
    void whatIsQueuedAndInFlightCanBeSeenByLane() {
        Seen seen = subscribe(2, 2, 10);
        seen.request(Long.MAX_VALUE);
        source.next(0, 10, 20, 30, 1);
        assertThat(List.of(watched.queued(0), watched.inFlight(0), watched.queued(1), watched.inFlight(1)))
                .containsExactly(3, 1, 0, 1);
        seen.batches.get(0).freeLane();
        assertThat(List.of(watched.queued(0), watched.inFlight(0))).containsExactly(1, 3);
        seen.batches.get(0).done();
        assertThat(List.of(watched.queued(0), watched.inFlight(0))).containsExactly(1, 2);
        seen.cancel();
        assertThat(List.of(watched.queued(0), watched.inFlight(0))).containsExactly(0, 2);
        seen.batches.forEach(Batch::done);
        assertIdle(watched);
    }

    private static final class Seen extends BaseSubscriber<Batch<Integer>> {
        final List<Batch<Integer>> batches = new ArrayList<>();
        final List<String> ends = new ArrayList<>();

        @Override
        protected void hookOnSubscribe(Subscription subscription) {}

        @Override
        protected void hookOnNext(Batch<Integer> batch) {
            batches.add(batch);
        }

        @Override
        protected void hookOnComplete() {
            ends.add("complete");
        }

        @Override
        protected void hookOnError(Throwable error) {
            ends.add(String.valueOf(error.getMessage()));
        }

        List<List<Integer>> items() {
            return batches.stream().map(Batch::items).toList();
        }
    }

    @Test
    void anIdleLaneEmitsAtOnceWhatItGets() {
        Seen seen = subscribe(2, 10, 100);
        seen.request(10);
        source.next(0);
        assertThat(seen.items()).containsExactly(List.of(0));
        source.next(1);
        assertThat(seen.items()).containsExactly(List.of(0), List.of(1));
    }

    @Test
    void whatArrivesWhileALaneIsBusyIsItsNextBatchInTheOrderOfArrival() {
        Seen seen = subscribe(2, 3, 100);
        seen.request(10);
        source.next(0, 10, 20, 30, 40, 1);
        assertThat(seen.items()).containsExactly(List.of(0), List.of(1));
        seen.batches.get(0).done();
        assertThat(seen.items()).containsExactly(List.of(0), List.of(1), List.of(10, 20, 30));
        seen.batches.get(2).done();
        assertThat(seen.items()).endsWith(List.of(40));
    }

    @Test
    void withoutDemandLanesGatherToo() {
        Seen seen = subscribe(2, 10, 100);
        source.next(0, 10, 1, 20);
        assertThat(seen.batches).isEmpty();
        seen.request(1);
        assertThat(seen.items()).containsExactly(List.of(0, 10, 20));
        seen.request(1);
        assertThat(seen.items()).containsExactly(List.of(0, 10, 20), List.of(1));
    }

    @Test
    void lanesTakeTurns() {
        Seen seen = subscribe(3, 1, 100);
        source.next(0, 10, 1, 11, 2, 12);
        for (int i = 0; i < 6; i++) {
            seen.request(1);
            seen.batches.get(i).done();
        }
        assertThat(seen.items())
                .containsExactly(List.of(0), List.of(1), List.of(2), List.of(10), List.of(11), List.of(12));
    }

    @Test
    void theSourceIsAskedForNoMoreThanIsDone() {
        Seen seen = subscribe(2, 2, 5);
        seen.request(Long.MAX_VALUE);
        source.assertMinRequested(5).assertMaxRequested(5);
        source.next(0, 10, 20, 30, 40);
        source.assertMaxRequested(0);
        seen.batches.get(0).done();
        source.assertMinRequested(1).assertMaxRequested(1);
        seen.batches.get(1).done();
        source.assertMinRequested(3).assertMaxRequested(3);
    }

    @Test
    void aLaneThatIsFreedEmitsAgainWhileTheItemsOfItsLastBatchAreStillHeld() {
        Seen seen = subscribe(1, 2, 3);
        seen.request(Long.MAX_VALUE);
        source.next(0, 10, 20);
        source.assertMaxRequested(0);
        Batch<Integer> first = seen.batches.get(0);

        first.freeLane();
        first.freeLane();
        assertThat(seen.items()).containsExactly(List.of(0), List.of(10, 20));
        source.assertMaxRequested(0);

        first.done();
        source.assertMinRequested(1).assertMaxRequested(1);
        source.next(30);
        assertThat(seen.items()).hasSize(2); // done() has not freed the lane, which the second batch has, again.
        seen.batches.get(1).done();
        assertThat(seen.items()).endsWith(List.of(30));
    }

    @Test
    void aBatchIsDoneOnce() {
        Seen seen = subscribe(1, 1, 5);
        seen.request(Long.MAX_VALUE);
        source.next(0, 10, 20);
        Batch<Integer> first = seen.batches.get(0);
        first.done();
        first.done();
        assertThat(seen.items()).containsExactly(List.of(0), List.of(10));
    }

    @Test
    void itCompletesWhenWhatHasGatheredIsEmittedAndNotBefore() {
        Seen seen = subscribe(1, 1, 5);
        seen.request(Long.MAX_VALUE);
        source.next(0, 10).complete();
        assertThat(seen.ends).isEmpty();
        seen.batches.get(0).done();
        assertThat(seen.ends).containsExactly("complete");
        seen.batches.get(1).done();
        assertThat(seen.ends).containsExactly("complete");
        assertThat(discarded).isEmpty();
    }

    @Test
    void anEmptySourceCompletesWithoutDemand() {
        Seen seen = subscribe(1, 1, 5);
        source.complete();
        assertThat(seen.ends).containsExactly("complete");
    }

    @Test
    void anErrorIsPassedOnAtOnceAndWhatHasGatheredIsDiscarded() {
        Seen seen = subscribe(2, 1, 10);
        seen.request(Long.MAX_VALUE);
        source.next(0, 10, 20, 1).error(new IllegalStateException("the source is gone"));
        assertThat(seen.ends).containsExactly("the source is gone");
        assertThat(discarded).containsExactly(10, 20);
    }

    @Test
    void aCancellationIsPassedOnAndWhatHasGatheredIsDiscarded() {
        Seen seen = subscribe(2, 1, 10);
        seen.request(1);
        source.next(0, 10, 1);
        seen.cancel();
        source.assertCancelled();
        assertThat(discarded).containsExactlyInAnyOrder(10, 1);
        seen.batches.get(0).done();
        assertThat(seen.items()).containsExactly(List.of(0));
    }

    @Test
    void aSourceThatEmitsMoreThanItWasAskedForIsAnError() {
        TestPublisher<Integer> wild = TestPublisher.createNoncompliant(TestPublisher.Violation.REQUEST_OVERFLOW);
        Seen seen = new Seen();
        new GatherWhileBusy<>(wild.flux(), n -> 0, new Lanes(1), 1, 2, stop.asMono(), discarded::add).subscribe(seen);
        seen.request(Long.MAX_VALUE);
        wild.next(0, 1, 2, 3);
        assertThat(seen.ends).singleElement().asString().contains("more than it was asked for");
        assertThat(discarded).containsExactly(1, 2);
    }

    /** Reactor throws errors of the JVM at who signals. */
    @Test
    void whatASubscriberThrowsEndsTheFluxInsteadOfStoppingEveryLane() {
        List<Throwable> errors = new ArrayList<>();
        Disposable running = new GatherWhileBusy<>(
                        source.flux(), n -> 0, new Lanes(1), 1, 5, stop.asMono(), discarded::add)
                .map(batch -> {
                    throw new StackOverflowError("deep");
                })
                .subscribe(batch -> {}, errors::add);
        source.next(0);
        assertThat(errors).singleElement().isInstanceOf(StackOverflowError.class);
        assertThat(running.isDisposed()).isTrue();
        source.assertCancelled();
    }

    @Test
    void askedToStopItGoesOnWhileAnythingIsHeldAndThenCompletes() {
        Seen seen = subscribe(1, 1, 5);
        seen.request(Long.MAX_VALUE);
        source.next(0);
        stop.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);
        source.next(10);
        seen.batches.get(0).done();
        assertThat(seen.ends).isEmpty();
        source.assertNotCancelled();
        seen.batches.get(1).done();
        assertThat(seen.ends).containsExactly("complete");
        source.assertCancelled();
        assertThat(discarded).isEmpty();
    }

    @Test
    void askedToStopWhileItIsIdleItCompletesAtOnce() {
        Seen seen = subscribe(1, 1, 5);
        stop.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);
        assertThat(seen.ends).containsExactly("complete");
    }

    /** Signals from many threads at once: nothing lost, nothing twice, nothing out of order, no lane at work twice, bounded. */
    @RepeatedTest(20)
    void underConcurrencyEveryItemIsEmittedOnceInTheOrderOfItsLane() {
        int lanes = 1 + ThreadLocalRandom.current().nextInt(8);
        int maxBatch = 1 + ThreadLocalRandom.current().nextInt(20);
        int maxInFlight = lanes + 1 + ThreadLocalRandom.current().nextInt(100);
        int count = 10_000;
        AtomicInteger held = new AtomicInteger();
        AtomicIntegerArray atWork = new AtomicIntegerArray(lanes);
        List<Queue<Integer>> seen = IntStream.range(0, lanes)
                .<Queue<Integer>>mapToObj(lane -> new ConcurrentLinkedQueue<>())
                .toList();
        Flux<Integer> items = Flux.range(0, count)
                .publishOn(Schedulers.boundedElastic())
                .doOnNext(item -> {
                    if (held.incrementAndGet() > maxInFlight) {
                        throw new AssertionError("more than %d are held".formatted(maxInFlight));
                    }
                });
        Lanes watch = new Lanes(lanes);
        new GatherWhileBusy<>(items, item -> item % lanes, watch, maxBatch, maxInFlight, Mono.never(), item -> {})
                .flatMap(
                        batch -> Mono.fromRunnable(() -> {
                                    int lane = batch.items().get(0) % lanes;
                                    assertThat(atWork.incrementAndGet(lane)).isEqualTo(1);
                                    assertThat(batch.items()).hasSizeBetween(1, maxBatch);
                                    seen.get(lane).addAll(batch.items());
                                    atWork.decrementAndGet(lane);
                                    held.addAndGet(-batch.items().size());
                                })
                                .subscribeOn(Schedulers.parallel())
                                .doFinally(end -> batch.done()),
                        lanes,
                        1)
                .then()
                .block(LIMIT);
        await().untilAsserted(() -> assertIdle(watch));
        for (int lane = 0; lane < lanes; lane++) {
            int first = lane;
            assertThat(seen.get(lane))
                    .containsExactlyElementsOf(IntStream.range(0, count)
                            .filter(item -> item % lanes == first)
                            .boxed()
                            .toList());
        }
    }

    /** Lanes go on while their batches are still held, and the flux is asked to stop at any moment: nothing is lost, or out of order. */
    @RepeatedTest(50)
    void underConcurrencyLanesThatAreFreedGoOnAndAStopLeavesNothingBehind() {
        int maxInFlight = 40;
        int stopAt = ThreadLocalRandom.current().nextInt(5_000);
        AtomicInteger held = new AtomicInteger();
        Queue<Integer> taken = new ConcurrentLinkedQueue<>();
        Queue<Integer> emitted = new ConcurrentLinkedQueue<>();
        Queue<Integer> tooLate = new ConcurrentLinkedQueue<>();
        Flux<Integer> items = Flux.range(0, 1_000_000)
                .publishOn(Schedulers.boundedElastic())
                .doOnNext(item -> {
                    taken.add(item);
                    if (held.incrementAndGet() > maxInFlight) {
                        throw new AssertionError("more than %d are held".formatted(maxInFlight));
                    }
                    if (item == stopAt) {
                        stop.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);
                    }
                });
        Lanes lanes = new Lanes(4);
        new GatherWhileBusy<>(items, item -> item % 4, lanes, 5, maxInFlight, stop.asMono(), tooLate::add)
                .flatMap(
                        batch -> Mono.fromRunnable(() -> {
                                    emitted.addAll(batch.items());
                                    batch.freeLane();
                                })
                                .subscribeOn(Schedulers.parallel())
                                .then(Mono.fromRunnable(() -> {
                                            held.addAndGet(-batch.items().size());
                                            batch.done();
                                        })
                                        .subscribeOn(Schedulers.boundedElastic())),
                        16,
                        1)
                .then()
                .block(LIMIT);
        await().untilAsserted(() -> {
            List<Integer> all = new ArrayList<>(emitted);
            all.addAll(tooLate);
            assertThat(all).as("emitted, or told to be too late").containsExactlyInAnyOrderElementsOf(taken);
            assertIdle(lanes);
        });
        for (int lane = 0; lane < 4; lane++) {
            int its = lane;
            assertThat(emitted.stream().filter(item -> item % 4 == its).toList())
                    .isSorted();
        }
    }

    private record Item(int number) {}

    /** Cancelled at any moment: what was taken from the source was emitted or is discarded, once. */
    @RepeatedTest(100)
    void whenCancelledAtAnyMomentEveryItemIsEmittedOrDiscardedOnce() {
        Queue<Item> taken = new ConcurrentLinkedQueue<>();
        Queue<Item> emitted = new ConcurrentLinkedQueue<>();
        Queue<Item> thrownAway = new ConcurrentLinkedQueue<>();
        Flux<Item> items = Flux.range(0, 1_000)
                .publishOn(Schedulers.boundedElastic(), 1)
                .map(Item::new)
                .doOnNext(taken::add);
        Lanes lanes = new Lanes(4);
        new GatherWhileBusy<>(items, item -> item.number() % 4, lanes, 3, 32, Mono.never(), thrownAway::add)
                .doOnNext(batch -> emitted.addAll(batch.items()))
                .flatMap(
                        batch -> Mono.just(batch)
                                .publishOn(Schedulers.parallel())
                                .doFinally(end -> batch.done()),
                        4,
                        1)
                .take(1 + ThreadLocalRandom.current().nextInt(500))
                .doOnDiscard(Batch.class, batch -> batch.done())
                .then()
                .block(LIMIT);
        await().untilAsserted(() -> {
            List<Item> all = new ArrayList<>(emitted);
            all.addAll(thrownAway);
            assertThat(all).doesNotHaveDuplicates().containsExactlyInAnyOrderElementsOf(taken);
            assertIdle(lanes);
        });
    }
}
