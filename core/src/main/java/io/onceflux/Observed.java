package io.onceflux;

import io.onceflux.HandlingObserver.Handling;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiFunction;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.util.context.Context;
import reactor.util.context.ContextView;

/** The handling of some messages as the user's observers see it; what they throw is kept away from the messages. */
final class Observed {

    private static final Logger log = LoggerFactory.getLogger(IdempotentConsumer.class);

    /** By nobody. */
    static final Observed NOT = new Observed(List.of());

    private final List<Handling> handlings;

    private Observed(List<Handling> handlings) {
        this.handlings = handlings;
    }

    /** @param caller the context of who waits for the outcome; empty where nobody does */
    static Observed begin(
            String consumer,
            List<HandlingObserver> observers,
            List<? extends Message<?>> messages,
            ContextView caller) {
        if (observers.isEmpty()) {
            return NOT;
        }
        List<? extends Delivery<?>> deliveries =
                messages.stream().map(Message::delivery).toList();
        List<Handling> handlings = new ArrayList<>(observers.size());
        for (HandlingObserver observer : observers) {
            guarded(() -> handlings.add(observer.begin(consumer, deliveries, caller)));
        }
        return new Observed(handlings);
    }

    /** An attempt at them. */
    <R> Mono<R> around(Mono<R> attempt) {
        return handlings.isEmpty()
                ? attempt
                : attempt.contextWrite(context -> into(context, Handling::ofAll).put(Observed.class, this));
    }

    /** The effect of one of them, within {@link #around}. */
    static <V> Flux<V> one(Message<?> message, ContextView context, Flux<V> effect) {
        Observed observed = context.hasKey(Observed.class) ? context.get(Observed.class) : NOT;
        return observed.handlings.isEmpty()
                ? effect
                : effect.contextWrite(outer -> observed.into(
                        outer, (handling, inner) -> handling.ofOne(message.delivery(), message.requireKey(), inner)));
    }

    private Context into(Context outer, BiFunction<Handling, Context, Context> of) {
        Context context = outer;
        for (Handling handling : handlings) {
            Context before = context;
            try {
                context = of.apply(handling, before);
            } catch (Throwable e) { // An Error too: the message has no part in it.
                warn(e);
            }
        }
        return context;
    }

    void onOutcome(Delivery<?> delivery, Outcome outcome) {
        tell(handling -> handling.onOutcome(delivery, outcome));
    }

    void onRetry(Delivery<?> delivery, FailureKind kind, Throwable error) {
        tell(handling -> handling.onRetry(delivery, kind, error));
    }

    void ended() {
        tell(Handling::ended);
    }

    private void tell(Consumer<Handling> call) {
        for (Handling handling : handlings) {
            guarded(() -> call.accept(handling));
        }
    }

    private static void guarded(Runnable call) {
        try {
            call.run();
        } catch (Throwable e) { // An Error too: Reactor rethrows some of them, and the lane would hang.
            warn(e);
        }
    }

    private static void warn(Throwable error) {
        log.warn("an observer threw; the message is not affected", Printable.withTrace(error));
    }
}
