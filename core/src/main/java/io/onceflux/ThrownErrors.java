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

    /** Runs the work to its end; fails as soon as something is thrown at its start or at a guarded publisher. */
    Mono<Void> watch(Publisher<?> work) {
        return Mono.firstWithSignal(caught.asMono(), guard(work).then());
    }

    /** The same publisher, cancelled when its subscriber throws. */
    <V> Flux<V> guard(Publisher<V> source) {
        return new Guarded<>(Flux.from(source), this);
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

    private static final class Guarded<V> extends Flux<V> {

        private final Flux<V> source;
        private final ThrownErrors errors;

        Guarded(Flux<V> source, ThrownErrors errors) {
            this.source = source;
            this.errors = errors;
        }

        @Override
        public void subscribe(CoreSubscriber<? super V> actual) {
            try {
                source.subscribe(new Guard<V>(actual, errors));
            } catch (Throwable thrown) {
                errors.caught(thrown);
            }
        }
    }

    private static final class Guard<V> implements CoreSubscriber<V>, Subscription {

        private final CoreSubscriber<? super V> actual;
        private final ThrownErrors errors;
        private Subscription upstream = Operators.emptySubscription();

        Guard(CoreSubscriber<? super V> actual, ThrownErrors errors) {
            this.actual = actual;
            this.errors = errors;
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
        public void onNext(V value) {
            try {
                actual.onNext(value);
            } catch (Throwable thrown) {
                caught(thrown);
            }
        }

        @Override
        public void onError(Throwable error) {
            try {
                actual.onError(error);
            } catch (Throwable thrown) {
                caught(thrown);
            }
        }

        @Override
        public void onComplete() {
            try {
                actual.onComplete();
            } catch (Throwable thrown) {
                caught(thrown);
            }
        }

        private void caught(Throwable thrown) {
            upstream.cancel();
            errors.caught(thrown);
        }

        @Override
        public void request(long n) {
            upstream.request(n);
        }

        @Override
        public void cancel() {
            upstream.cancel();
        }
    }
}
