package io.onceflux;

import java.util.function.Supplier;
import org.reactivestreams.Publisher;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Operators;
import reactor.core.publisher.Sinks;
import reactor.util.context.Context;

/**
 * Catches the errors of an effect that Reactor throws at whoever sends a signal instead of passing them on: stack overflow,
 * a class that is missing, memory that is short. The sender is often the driver, which would take its connection for broken,
 * while the effect would be waited for until its time limit.
 *
 * <p>What is thrown on a thread that signals neither for the driver nor for OnceFlux, such as a timer's, is not seen here.
 */
final class ThrownErrors {

    /** Unsafe as to threads only for one that emits several signals. */
    private final Sinks.Empty<Void> caught = Sinks.unsafe().empty();

    /** The same work, which fails as soon as something is thrown at a guarded publisher. */
    <V> Mono<V> watch(Mono<V> work) {
        return Mono.firstWithSignal(caught.asMono().then(Mono.never()), work);
    }

    /**
     * The same publisher, cancelled when its subscriber throws; with what it emits changed and all of it seen: one operator for what would be five, and runs with every statement.
     *
     * @param observers makes one for each subscription; what it throws is the error of that, and the source is not subscribed
     */
    <I, O> Flux<O> guard(Publisher<? extends I> source, Supplier<? extends Observer<I, O>> observers) {
        return new Guarded<>(Flux.from(source), this, observers);
    }

    /** Sees what passes a guard, of one subscription. */
    @FunctionalInterface
    interface Observer<I, O> {

        /** Returns what is emitted instead; what it throws is taken for the source's error. */
        O onNext(I value);

        /** The source has completed or failed; before the subscriber hears of it. */
        default void onEnd() {}

        /** The subscriber has cancelled, or has thrown, or the source has as it was subscribed to. It may be told so again. */
        default void onCancel() {}
    }

    /** Calls user code whose errors would otherwise be thrown within the driver. */
    static <V> V asExceptions(Supplier<V> call) {
        try {
            return call.get();
        } catch (Error error) {
            throw new EffectErrorException(error);
        }
    }

    private void caught(Throwable thrown) {
        caught.emitError(
                thrown instanceof Error error ? new EffectErrorException(error) : thrown,
                Sinks.EmitFailureHandler.FAIL_FAST);
    }

    /** An {@link Error} of an effect, as an exception that Reactor passes on. */
    static final class EffectErrorException extends RuntimeException {
        EffectErrorException(Error error) {
            super("the effect failed with " + error, error);
        }
    }

    private static final class Guarded<I, O> extends Flux<O> {

        private final Flux<? extends I> source;
        private final ThrownErrors errors;
        private final Supplier<? extends Observer<I, O>> observers;

        Guarded(Flux<? extends I> source, ThrownErrors errors, Supplier<? extends Observer<I, O>> observers) {
            this.source = source;
            this.errors = errors;
            this.observers = observers;
        }

        @Override
        public void subscribe(CoreSubscriber<? super O> actual) {
            Observer<I, O> observer;
            try {
                observer = observers.get();
            } catch (RuntimeException refused) {
                Operators.error(actual, refused);
                return;
            }
            try {
                source.subscribe(new Guard<I, O>(actual, errors, observer));
            } catch (Throwable thrown) {
                observer.onCancel();
                errors.caught(thrown);
            }
        }
    }

    private static final class Guard<I, O> implements CoreSubscriber<I>, Subscription {

        private final CoreSubscriber<? super O> actual;
        private final ThrownErrors errors;
        private final Observer<I, O> observer;
        private Subscription upstream = Operators.emptySubscription();
        private boolean done;

        Guard(CoreSubscriber<? super O> actual, ThrownErrors errors, Observer<I, O> observer) {
            this.actual = actual;
            this.errors = errors;
            this.observer = observer;
        }

        @Override
        public Context currentContext() {
            return actual.currentContext();
        }

        @Override
        public void onSubscribe(Subscription subscription) {
            upstream = subscription;
            try {
                actual.onSubscribe(this);
            } catch (Throwable thrown) {
                caught(thrown);
            }
        }

        @Override
        public void onNext(I value) {
            if (done) {
                Operators.onNextDropped(value, currentContext());
                return;
            }
            O seen;
            try {
                seen = observer.onNext(value);
            } catch (RuntimeException error) {
                upstream.cancel();
                onError(error);
                return;
            }
            try {
                actual.onNext(seen);
            } catch (Throwable thrown) {
                caught(thrown);
            }
        }

        @Override
        public void onError(Throwable error) {
            if (done) {
                Operators.onErrorDropped(error, currentContext());
                return;
            }
            done = true;
            observer.onEnd();
            try {
                actual.onError(error);
            } catch (Throwable thrown) {
                caught(thrown);
            }
        }

        @Override
        public void onComplete() {
            if (done) {
                return;
            }
            done = true;
            observer.onEnd();
            try {
                actual.onComplete();
            } catch (Throwable thrown) {
                caught(thrown);
            }
        }

        private void caught(Throwable thrown) {
            cancel();
            errors.caught(thrown);
        }

        @Override
        public void request(long n) {
            upstream.request(n);
        }

        @Override
        public void cancel() {
            observer.onCancel();
            upstream.cancel();
        }
    }
}
