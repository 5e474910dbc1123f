package io.onceflux;

import io.onceflux.Attempts.Handled;
import io.onceflux.GatherWhileBusy.Batch;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.SignalType;

/**
 * The way of a message: identify, lane, gather, attempt (claims and effects in one transaction), settle after the commit.
 *
 * <p>A lane is serial; lanes run side by side. All lanes together hold at most {@code maxInFlight} deliveries, queued or at
 * work, whatever the number of keys; beyond that the source is asked for no more.
 */
final class ConsumerPipeline<T> {

    private final Settings settings;
    private final Identify<T> identify;
    private final Attempts<T> attempts;
    private final Settling settling;
    private final Lifecycle lifecycle;

    ConsumerPipeline(
            Settings settings, Identify<T> identify, Attempts<T> attempts, Settling settling, Lifecycle lifecycle) {
        this.settings = settings;
        this.identify = identify;
        this.attempts = attempts;
        this.settling = settling;
        this.lifecycle = lifecycle;
    }

    Flux<Outcome> outcomes(Flux<Delivery<T>> deliveries) {
        return Flux.defer(() -> {
            Lifecycle.Count inFlight = new Lifecycle.Count();
            return deliveries
                    .takeUntilOther(lifecycle.stopRequested().then(inFlight.whenZero()))
                    .doOnNext(delivery -> inFlight.up())
                    .map(identify::identify)
                    .transform(this::inLanes)
                    .flatMap(
                            batch -> toItsEnd(
                                            handle(batch.items()), batch.items().size())
                                    .doFinally(end -> {
                                        inFlight.down(batch.items().size());
                                        batch.done();
                                    }),
                            settings.lanes(),
                            settings.maxBatch())
                    .takeUntilOther(lifecycle.cutOff())
                    .doOnDiscard(Message.class, message -> dropped(message));
        });
    }

    private Flux<Batch<Message<T>>> inLanes(Flux<Message<T>> messages) {
        return new GatherWhileBusy<>(
                messages,
                message -> message.lane(settings.lanes()),
                settings.lanes(),
                settings.maxBatch(),
                settings.maxInFlight());
    }

    /** A transaction never waits, open, for a subscriber that is slow to ask for its outcomes. */
    private static Flux<Outcome> toItsEnd(Flux<Outcome> handling, int size) {
        return handling.onBackpressureBuffer(size);
    }

    private Flux<Outcome> handle(List<Message<T>> messages) {
        return Flux.defer(() -> {
            long start = System.nanoTime();
            Worklist<T> work = attempts.worklist(messages);
            return attempts.steps(work)
                    .concatMap(step -> step.flatMap(handled -> settle(handled, start)), 0)
                    .concatMapIterable(outcomes -> outcomes)
                    .doFinally(end -> {
                        if (end == SignalType.CANCEL) {
                            attempts.close(work).forEach(this::dropped);
                        }
                    });
        });
    }

    private Mono<List<Outcome>> settle(List<Handled<T>> handled, long start) {
        return Flux.fromIterable(handled)
                .flatMapSequential(
                        one -> settle(one.message().delivery(), one.outcome(), start), Math.max(1, handled.size()))
                .collectList();
    }

    private Mono<Outcome> settle(Delivery<T> delivery, @Nullable Outcome outcome, long start) {
        return Mono.defer(() -> {
            if (outcome == null) {
                return letGo(delivery);
            }
            settings.listener().onOutcome(delivery, outcome, Duration.ofNanos(System.nanoTime() - start));
            return settling.settle(delivery, outcome.settlement()).thenReturn(outcome);
        });
    }

    /** Leaves a message that has no outcome to redelivery. */
    private Mono<Outcome> letGo(Delivery<T> delivery) {
        settings.listener().onDropped(delivery);
        return delivery.isCurrent()
                ? settling.settle(delivery, Settlement.requeue()).then(Mono.empty())
                : Mono.empty();
    }

    private void dropped(Message<?> message) {
        settings.listener().onDropped(message.delivery());
    }
}
