package io.onceflux;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.concurrent.atomic.AtomicLongFieldUpdater;
import java.util.function.Consumer;
import java.util.function.ToIntFunction;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.core.Exceptions;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.publisher.FluxOperator;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Operators;
import reactor.util.concurrent.Queues;
import reactor.util.context.Context;

/**
 * Lanes: what arrives while a lane is busy is gathered, and emitted as one batch the moment the lane is free. There is no timer: an
 * idle lane emits at once what it gets.
 *
 * <p>A lane is busy from the emission of its batch until {@link Batch#freeLane} or {@link Batch#done}. At most {@code maxInFlight}
 * items are held, gathered or in batches that are not done, whatever the number of keys; the source is asked for no more. Every
 * item that the source emits is emitted in a batch, or told to {@code onDiscard} because the flux was cancelled, has failed, or was just
 * about to complete when it was asked to stop.
 */
final class GatherWhileBusy<T> extends FluxOperator<T, GatherWhileBusy.Batch<T>> {

    private final ToIntFunction<? super T> laneOf;
    private final Lanes lanes;
    private final int maxBatch;
    private final int maxInFlight;
    private final Mono<Void> stop;
    private final Consumer<? super T> onDiscard;

    /**
     * @param laneOf the lane of an item, from 0 to their number - 1
     * @param lanes told how many items are gathered and held in each
     * @param maxBatch the most items of a batch
     * @param maxInFlight the most items held
     * @param stop once it has completed, the flux completes as soon as nothing is held; until then the source may go on
     * @param onDiscard told an item that is not emitted; not by Reactor's discard hook, which what is done with the batches would see
     *     too. It must not throw
     */
    GatherWhileBusy(
            Flux<? extends T> source,
            ToIntFunction<? super T> laneOf,
            Lanes lanes,
            int maxBatch,
            int maxInFlight,
            Mono<Void> stop,
            Consumer<? super T> onDiscard) {
        super(source);
        this.laneOf = laneOf;
        this.lanes = lanes;
        this.maxBatch = maxBatch;
        this.maxInFlight = maxInFlight;
        this.stop = stop;
        this.onDiscard = onDiscard;
    }

    @Override
    public void subscribe(CoreSubscriber<? super Batch<T>> actual) {
        Gatherer<T> gatherer = new Gatherer<>(actual, laneOf, lanes, maxBatch, maxInFlight, onDiscard);
        source.subscribe(gatherer);
        stop.subscribe(gatherer.stopping);
    }

    /** Items of one lane, in the order of their arrival, at least one. */
    static final class Batch<T> {

        @SuppressWarnings("rawtypes")
        private static final AtomicIntegerFieldUpdater<Batch> STATE =
                AtomicIntegerFieldUpdater.newUpdater(Batch.class, "state");

        private static final int BUSY = 0;
        private static final int LANE_FREED = 1;
        private static final int DONE = 2;

        private final Gatherer<T> gatherer;
        private final Lane<T> lane;
        private final List<T> items;

        @SuppressWarnings("unused") // STATE
        private volatile int state;

        private Batch(Gatherer<T> gatherer, Lane<T> lane, List<T> items) {
            this.gatherer = gatherer;
            this.lane = lane;
            this.items = items;
        }

        List<T> items() {
            return items;
        }

        /**
         * Frees the lane: its next batch is emitted, on this thread or on one that is emitting already. The items are still held. Does
         * nothing if it was freed before.
         */
        void freeLane() {
            if (STATE.compareAndSet(this, BUSY, LANE_FREED)) {
                gatherer.release(new Release<>(lane, 0));
            }
        }

        /** Gives the items back, so that the source is asked for as many more, and frees the lane. Further calls do nothing. */
        void done() {
            int before = STATE.getAndSet(this, DONE);
            if (before != DONE) {
                gatherer.lanes.done(lane.number, items.size());
                gatherer.release(new Release<>(before == BUSY ? lane : null, items.size()));
            }
        }
    }

    /** What a batch gives back: its lane, how many items. */
    private record Release<T>(@Nullable Lane<T> lane, int items) {}

    private static final class Lane<T> {
        final int number;
        final Queue<T> gathered = new ArrayDeque<>();
        boolean busy;

        Lane(int number) {
            this.number = number;
        }
    }

    /** Signals come in from anywhere; {@link #drain} alone touches the lanes and emits, on one thread at a time. */
    private static final class Gatherer<T> implements CoreSubscriber<T>, Subscription {

        @SuppressWarnings("rawtypes")
        private static final AtomicIntegerFieldUpdater<Gatherer> SIGNALS =
                AtomicIntegerFieldUpdater.newUpdater(Gatherer.class, "signals");

        @SuppressWarnings("rawtypes")
        private static final AtomicLongFieldUpdater<Gatherer> REQUESTED =
                AtomicLongFieldUpdater.newUpdater(Gatherer.class, "requested");

        private final CoreSubscriber<? super Batch<T>> actual;
        private final ToIntFunction<? super T> laneOf;
        private final Lanes lanes;
        private final List<Lane<T>> byNumber;
        private final int maxBatch;
        private final int maxInFlight;
        private final Consumer<? super T> onDiscard;
        private final Queue<T> arrived;
        private final Queue<Release<T>> released =
                Queues.<Release<T>>unboundedMultiproducer().get();
        private final Queue<Lane<T>> ready = new ArrayDeque<>();
        private final Stopping stopping = new Stopping(this);
        private Subscription upstream = Operators.emptySubscription();
        private int gathered;
        private int held;

        @SuppressWarnings("unused") // SIGNALS
        private volatile int signals;

        private volatile long requested;
        private volatile boolean ended;
        private @Nullable Throwable error;
        private volatile boolean over;

        Gatherer(
                CoreSubscriber<? super Batch<T>> actual,
                ToIntFunction<? super T> laneOf,
                Lanes lanes,
                int maxBatch,
                int maxInFlight,
                Consumer<? super T> onDiscard) {
            this.actual = actual;
            this.laneOf = laneOf;
            this.lanes = lanes;
            this.byNumber = new ArrayList<>(lanes.count());
            for (int lane = 0; lane < lanes.count(); lane++) {
                byNumber.add(new Lane<>(lane));
            }
            this.maxBatch = maxBatch;
            this.maxInFlight = maxInFlight;
            this.onDiscard = onDiscard;
            this.arrived = Queues.<T>unbounded(Math.min(maxInFlight, Queues.SMALL_BUFFER_SIZE))
                    .get();
        }

        @Override
        public Context currentContext() {
            return actual.currentContext();
        }

        @Override
        public void onSubscribe(Subscription subscription) {
            if (Operators.validate(upstream == Operators.emptySubscription() ? null : upstream, subscription)) {
                upstream = subscription;
                actual.onSubscribe(this);
                upstream.request(maxInFlight);
            }
        }

        @Override
        public void onNext(T item) {
            if (ended) {
                onDiscard.accept(item);
                return;
            }
            arrived.offer(item);
            drain();
        }

        @Override
        public void onError(Throwable failure) {
            if (ended) {
                Operators.onErrorDropped(failure, currentContext());
                return;
            }
            error = failure;
            ended = true;
            drain();
        }

        @Override
        public void onComplete() {
            ended = true;
            drain();
        }

        @Override
        public void request(long count) {
            if (Operators.validate(count)) {
                long unused = Operators.addCap(REQUESTED, this, count);
                drain();
            }
        }

        @Override
        public void cancel() {
            over = true;
            upstream.cancel();
            stopping.cancel();
            drain();
        }

        void release(Release<T> release) {
            released.offer(release);
            drain();
        }

        private void drain() {
            if (SIGNALS.getAndIncrement(this) != 0) {
                return;
            }
            int seen = 1;
            while (seen != 0) {
                boolean last = ended; // Before what has arrived is taken, so that nothing arrives in between.
                int freed = freeLanes();
                takeArrived();
                if (!ended && (held > maxInFlight || (held == 0 && stopping.asked))) {
                    upstream.cancel();
                    error = held == 0
                            ? null
                            : Exceptions.failWithOverflow("the source emitted more than it was asked for");
                    ended = true;
                    last = true;
                }
                if (!over) {
                    emitReady();
                }
                if (!over && last && (error != null || gathered == 0)) {
                    end();
                }
                if (over) {
                    discardGathered();
                } else if (freed > 0 && !last) {
                    upstream.request(freed);
                }
                seen = SIGNALS.addAndGet(this, -seen);
            }
        }

        /** @return for how many items there is room again */
        private int freeLanes() {
            int freed = 0;
            for (Release<T> release = released.poll(); release != null; release = released.poll()) {
                freed += release.items;
                held -= release.items;
                Lane<T> lane = release.lane;
                if (lane != null) {
                    lane.busy = false;
                    if (!lane.gathered.isEmpty()) {
                        ready.add(lane);
                    }
                }
            }
            return freed;
        }

        private void takeArrived() {
            for (T item = arrived.poll(); item != null; item = arrived.poll()) {
                Lane<T> lane = byNumber.get(laneOf.applyAsInt(item));
                if (lane.gathered.isEmpty() && !lane.busy) {
                    ready.add(lane);
                }
                lane.gathered.add(item);
                lanes.arrived(lane.number);
                gathered++;
                held++;
            }
        }

        private void emitReady() {
            long demand = requested;
            long emitted = 0;
            while (emitted < demand && !over) {
                Lane<T> lane = ready.poll();
                if (lane == null) {
                    break;
                }
                Batch<T> batch = new Batch<>(this, lane, take(lane.gathered));
                lane.busy = true;
                lanes.begun(lane.number, batch.items.size());
                gathered -= batch.items.size();
                emitted++;
                emit(batch);
            }
            long unused = Operators.produced(REQUESTED, this, emitted);
        }

        /** What Reactor throws instead of signalling it would otherwise stop every lane, without a word. */
        private void emit(Batch<T> batch) {
            try {
                actual.onNext(batch);
            } catch (Throwable thrown) {
                over = true;
                upstream.cancel();
                stopping.cancel();
                batch.done();
                actual.onError(thrown);
            }
        }

        private List<T> take(Queue<T> from) {
            int count = Math.min(maxBatch, from.size());
            if (count == 1) {
                return List.of(from.remove());
            }
            List<T> taken = new ArrayList<>(count);
            for (int i = 0; i < count; i++) {
                taken.add(from.remove());
            }
            return taken;
        }

        private void end() {
            over = true;
            stopping.cancel();
            Throwable failure = error;
            if (failure == null) {
                actual.onComplete();
            } else {
                actual.onError(failure);
            }
        }

        private void discardGathered() {
            ready.clear();
            gathered = 0;
            for (Lane<T> lane : byNumber) {
                lane.gathered.forEach(onDiscard);
                lanes.discarded(lane.number, lane.gathered.size());
                lane.gathered.clear();
            }
        }
    }

    /** Hears that the flux is to stop. */
    private static final class Stopping extends BaseSubscriber<Void> {

        private final Gatherer<?> gatherer;
        private volatile boolean asked;

        Stopping(Gatherer<?> gatherer) {
            this.gatherer = gatherer;
        }

        @Override
        protected void hookOnComplete() {
            asked = true;
            gatherer.drain();
        }
    }
}
