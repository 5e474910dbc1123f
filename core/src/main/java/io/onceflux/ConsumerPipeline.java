package io.onceflux;

import java.time.Duration;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * The way of a message: identify, lane, attempt (claim and effect in one transaction), settle after the commit.
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
                    .groupBy(Message::lane, queuedInLanes())
                    .flatMap(
                            lane -> lane.concatMap(
                                    message -> toItsEnd(handle(message)).doFinally(end -> inFlight.down()), 0),
                            settings.lanes(),
                            1)
                    .takeUntilOther(lifecycle.cutOff());
        });
    }

    /** A transaction never waits, open, for a subscriber that is slow to ask for its outcome. */
    private static Flux<Outcome> toItsEnd(Mono<Outcome> handling) {
        return handling.flux().onBackpressureBuffer(1);
    }

    private Mono<Outcome> handle(Message<T> message) {
        return Mono.<Outcome>defer(() -> {
                    if (lifecycle.isStopping() || !message.delivery().isCurrent()) {
                        return letGo(message);
                    }
                    long start = System.nanoTime();
                    return attempts.untilDone(message)
                            .flatMap(outcome -> settle(message, outcome, start).thenReturn(outcome))
                            .switchIfEmpty(letGo(message));
                })
                .doFirst(message.delivery()::handlingBegins)
                .doFinally(end -> message.delivery().handlingEnded());
    }

    private Mono<Void> settle(Message<T> message, Outcome outcome, long start) {
        return Mono.defer(() -> {
            settings.listener().onOutcome(message.delivery(), outcome, Duration.ofNanos(System.nanoTime() - start));
            return settling.settle(message.delivery(), outcome.settlement());
        });
    }

    /** Leaves a message that has no outcome to redelivery. */
    private Mono<Outcome> letGo(Message<T> message) {
        return Mono.defer(() -> {
            settings.listener().onDropped(message.delivery());
            return message.delivery().isCurrent()
                    ? settling.settle(message.delivery(), Settlement.requeue()).then(Mono.empty())
                    : Mono.empty();
        });
    }

    private int queuedInLanes() {
        return settings.maxInFlight() - settings.lanes();
    }
}
