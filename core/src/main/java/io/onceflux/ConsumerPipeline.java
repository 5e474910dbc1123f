package io.onceflux;

import io.onceflux.Attempts.Handled;
import io.onceflux.GatherWhileBusy.Batch;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * The way of a message: identify, lane, gather, attempt (claims and effects in one transaction), settle after the commit.
 *
 * <p>A lane is serial, up to the commit; lanes run side by side. All lanes together hold at most {@code maxInFlight} deliveries, queued or at
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
        return deliveries
                .map(identify::identify)
                .transform(this::inLanes)
                .flatMap(
                        batch -> toItsEnd(handle(batch), batch.items().size()).doFinally(end -> batch.done()),
                        settings.maxInFlight(),
                        settings.maxBatch())
                .takeUntilOther(lifecycle.cutOff())
                .doOnDiscard(Batch.class, batch -> dropped(batch));
    }

    private Flux<Batch<Message<T>>> inLanes(Flux<Message<T>> messages) {
        return new GatherWhileBusy<>(
                messages,
                message -> message.lane(settings.lanes()),
                settings.lanes(),
                settings.maxBatch(),
                settings.maxInFlight(),
                lifecycle.stopRequested(),
                this::dropped);
    }

    /** A transaction never waits, open, for a subscriber that is slow to ask for its outcomes. */
    private static Flux<Outcome> toItsEnd(Flux<Outcome> handling, int size) {
        return handling.onBackpressureBuffer(size);
    }

    private Flux<Outcome> handle(Batch<Message<T>> batch) {
        return Flux.defer(() -> {
            List<Message<T>> messages = batch.items();
            long start = System.nanoTime();
            messages.forEach(Message::handlingBegins);
            Worklist<T> work = attempts.worklist(withoutLost(messages));
            return attempts.steps(work)
                    .concatMap(
                            step -> step.doOnNext(handled -> freeLaneAfter(handled, work, batch))
                                    .flatMap(handled -> settle(handled, start)),
                            0)
                    .concatMapIterable(outcomes -> outcomes)
                    .doOnCancel(() -> {
                        attempts.close(work);
                        messages.forEach(this::dropped);
                    })
                    .doFinally(end -> messages.forEach(Message::handlingEnded));
        });
    }

    /** Those whose channel is lost are not begun; nor may what comes again pass for a copy of them. */
    private List<Message<T>> withoutLost(List<Message<T>> messages) {
        if (messages.size() == 1) {
            return messages; // It is looked at before it is attempted.
        }
        List<Message<T>> current = new ArrayList<>();
        for (Message<T> message : messages) {
            if (message.isCurrent()) {
                current.add(message);
            } else {
                dropped(message);
            }
        }
        return current;
    }

    /** Nobody else needs to wait until the broker has been told that all is done. */
    private void freeLaneAfter(List<Handled<T>> handled, Worklist<T> work, Batch<Message<T>> batch) {
        if (work.isEmpty()
                && handled.stream()
                        .allMatch(one -> one.outcome() != null && one.outcome().isDone())) {
            batch.freeLane();
        }
    }

    /** Tells the broker of all of them at once. Returns the outcomes in the order of the messages, but for those that were let go or cut off. */
    private Mono<List<Outcome>> settle(List<Handled<T>> handled, long start) {
        return Mono.defer(() -> {
            @Nullable Outcome[] told = new Outcome[handled.size()];
            List<Mono<Void>> settlements = new ArrayList<>(handled.size());
            for (int i = 0; i < handled.size(); i++) {
                int place = i;
                Handled<T> one = handled.get(i);
                settlements.add(settle(one.message(), one.outcome(), start, outcome -> told[place] = outcome));
            }
            return (settlements.size() == 1 ? settlements.get(0) : Mono.when(settlements))
                    .then(Mono.fromSupplier(
                            () -> Arrays.stream(told).filter(Objects::nonNull).toList()));
        });
    }

    private Mono<Void> settle(
            Message<T> message, @Nullable Outcome outcome, long start, Consumer<? super Outcome> tell) {
        return Mono.defer(() -> {
            Delivery<T> delivery = message.delivery();
            if (!message.account()) {
                return Mono.empty(); // Cut off in between: it has been told that it is left to redelivery.
            }
            if (outcome == null) {
                settings.listener().onDropped(delivery);
                return letGo(message);
            }
            settings.listener().onOutcome(delivery, outcome, Duration.ofNanos(System.nanoTime() - start));
            tell.accept(outcome);
            return settling.settle(delivery, outcome.settlement(), message::isCurrent);
        });
    }

    /** Leaves a message that has no outcome to redelivery. */
    private Mono<Void> letGo(Message<T> message) {
        return message.isCurrent()
                ? settling.settle(message.delivery(), Settlement.requeue(), message::isCurrent)
                : Mono.empty();
    }

    /** A batch that was emitted as the flux was cancelled. */
    private void dropped(Batch<?> batch) {
        for (Object item : batch.items()) {
            if (item instanceof Message<?> message) {
                dropped(message);
            }
        }
    }

    private void dropped(Message<?> message) {
        if (message.account()) {
            settings.listener().onDropped(message.delivery());
        }
    }
}
