package io.onceflux;

import io.onceflux.Attempts.Handled;
import io.onceflux.GatherWhileBusy.Batch;
import io.onceflux.Settling.Answer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.util.context.Context;

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
    private final Lanes lanes;

    ConsumerPipeline(
            Settings settings,
            Identify<T> identify,
            Attempts<T> attempts,
            Settling settling,
            Lifecycle lifecycle,
            Lanes lanes) {
        this.settings = settings;
        this.identify = identify;
        this.attempts = attempts;
        this.settling = settling;
        this.lifecycle = lifecycle;
        this.lanes = lanes;
    }

    Flux<Outcome> outcomes(Flux<Delivery<T>> deliveries) {
        return deliveries
                .map(identify::identify)
                .transform(this::inLanes)
                .flatMap(this::toItsEnd, settings.maxInFlight())
                .concatMapIterable(told -> told)
                .takeUntilOther(lifecycle.cutOff())
                .doOnDiscard(Batch.class, batch -> dropped(batch));
    }

    private Flux<Batch<Message<T>>> inLanes(Flux<Message<T>> messages) {
        return new GatherWhileBusy<>(
                messages,
                message -> message.lane(lanes.count()),
                lanes,
                settings.maxBatch(),
                settings.maxInFlight(),
                lifecycle.stopRequested(),
                this::dropped);
    }

    /** A transaction never waits, open, for a subscriber that is slow to ask for its outcomes; but until it has, they count as held. */
    private Flux<TakenOutcomes> toItsEnd(Batch<Message<T>> batch) {
        TakenOutcomes.OfBatch ofBatch = new TakenOutcomes.OfBatch(batch);
        return handle(batch)
                .map(ofBatch::told)
                .onBackpressureBuffer(batch.items().size())
                .doFinally(end -> ofBatch.ended());
    }

    private Flux<List<Outcome>> handle(Batch<Message<T>> batch) {
        return Flux.defer(() -> {
            List<Message<T>> messages = batch.items();
            long start = System.nanoTime();
            messages.forEach(Message::handlingBegins);
            Observed observed = Observed.begin(settings.consumer(), settings.observers(), messages, Context.empty());
            Worklist<T> work = attempts.worklist(withoutLost(messages), observed);
            return attempts.steps(work)
                    .concatMap(
                            step -> step.doOnNext(handled -> freeLaneAfter(handled, work, batch))
                                    .flatMap(handled -> settle(handled, start, observed)),
                            0)
                    .doOnCancel(() -> {
                        attempts.close(work);
                        messages.forEach(this::dropped);
                    })
                    .doFinally(end -> {
                        messages.forEach(Message::handlingEnded);
                        observed.ended();
                    });
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
    private Mono<List<Outcome>> settle(List<Handled<T>> handled, long start, Observed observed) {
        return Mono.defer(() -> {
            Duration elapsed = Duration.ofNanos(System.nanoTime() - start);
            List<Outcome> told = new ArrayList<>(handled.size());
            List<Answer> answers = new ArrayList<>(handled.size());
            for (Handled<T> one : handled) {
                Message<T> message = one.message();
                if (!message.account()) {
                    continue; // Cut off in between: it has been told that it is left to redelivery.
                }
                Outcome outcome = one.outcome();
                if (outcome != null) {
                    settings.listener().onOutcome(message.delivery(), outcome, elapsed);
                    observed.onOutcome(message.delivery(), outcome);
                    told.add(outcome);
                    answers.add(answer(message, outcome.settlement()));
                } else {
                    settings.listener().onDropped(message.delivery());
                    if (message.isCurrent()) { // Without an outcome it is left to redelivery.
                        answers.add(answer(message, Settlement.requeue()));
                    }
                }
            }
            return settling.settle(answers).thenReturn(told);
        });
    }

    private static Answer answer(Message<?> message, Settlement settlement) {
        return new Answer(message.delivery(), settlement, message::isCurrent);
    }

    /** A batch that was emitted as the flux was cancelled. */
    private void dropped(Batch<?> batch) {
        for (Object item : batch.items()) {
            if (item instanceof Message<?> message) {
                dropped(message);
            }
        }
        batch.done();
    }

    private void dropped(Message<?> message) {
        if (message.account()) {
            settings.listener().onDropped(message.delivery());
        }
    }
}
