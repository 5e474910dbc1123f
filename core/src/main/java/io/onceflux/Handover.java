package io.onceflux;

import io.r2dbc.spi.Connection;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Operators;
import reactor.util.context.Context;

/**
 * The way of a connection from the pool into one transaction, so that a caller who goes away on the way neither leaks it nor
 * gives it back in the middle of BEGIN.
 *
 * <p>r2dbc-pool releases a connection when the subscription that brought it is cancelled, even after it was handed out, and
 * Spring knows of a connection only once BEGIN has succeeded. Here a cancellation reaches the pool only before the pool has
 * emitted. From then on, until the transaction's work begins, the connection is this object's to close.
 */
final class Handover {

    private static final Object AWAITED = new Object();
    private static final Object CANCELLED = new Object();
    private static final Object HANDED_OVER = new Object();

    private final AtomicReference<Object> state = new AtomicReference<>(AWAITED);
    private volatile @Nullable AttemptConnection taken;

    /** The connection that the source emits, or nothing if the caller has gone before. */
    Mono<AttemptConnection> take(Mono<AttemptConnection> source) {
        return source.transform(Operators.<AttemptConnection, AttemptConnection>lift(
                (scannable, subscriber) -> new Taker(subscriber, this)));
    }

    /** The transaction's work begins: from now on Spring rolls back and closes. */
    void complete(Connection connection) {
        if (!state.compareAndSet(connection, HANDED_OVER)) {
            throw new IllegalStateException("the caller went away before the transaction began");
        }
    }

    /** The connection of the transaction; null if there is none yet. */
    @Nullable
    AttemptConnection connection() {
        return taken;
    }

    /** The caller has gone: closes a connection that is between the pool and the transaction. */
    Mono<Void> abandon() {
        return Mono.defer(() -> {
            Object before = state.getAndUpdate(now -> now == HANDED_OVER ? now : CANCELLED);
            return before instanceof AttemptConnection connection ? connection.abandon() : Mono.empty();
        });
    }

    private static final class Taker implements CoreSubscriber<AttemptConnection>, Subscription {

        private final CoreSubscriber<? super AttemptConnection> actual;
        private final Handover handover;
        private Subscription upstream = Operators.emptySubscription();

        Taker(CoreSubscriber<? super AttemptConnection> actual, Handover handover) {
            this.actual = actual;
            this.handover = handover;
        }

        @Override
        public Context currentContext() {
            return actual.currentContext();
        }

        @Override
        public void onSubscribe(Subscription subscription) {
            if (Operators.validate(null, subscription)) {
                upstream = subscription;
                actual.onSubscribe(this);
            }
        }

        @Override
        public void onNext(AttemptConnection connection) {
            if (handover.state.compareAndSet(AWAITED, connection)) {
                handover.taken = connection;
                actual.onNext(connection);
            } else {
                upstream.cancel(); // The pool takes it back.
            }
        }

        @Override
        public void onError(Throwable error) {
            actual.onError(error);
        }

        @Override
        public void onComplete() {
            actual.onComplete();
        }

        @Override
        public void request(long n) {
            upstream.request(n);
        }

        @Override
        public void cancel() {
            Object before = handover.state.getAndUpdate(now -> now == AWAITED ? CANCELLED : now);
            if (before == AWAITED || before == CANCELLED) { // It may have been abandoned before it was subscribed.
                upstream.cancel();
            }
        }
    }
}
