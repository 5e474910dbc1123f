package io.onceflux;

import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import io.netty.util.TimerTask;
import io.onceflux.Limits.LimitPassedException;
import java.time.Duration;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Subscription;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.CoreSubscriber;
import reactor.core.publisher.Mono;
import reactor.core.publisher.MonoOperator;
import reactor.core.publisher.Operators;
import reactor.core.scheduler.Schedulers;
import reactor.util.context.Context;

/**
 * A source that is cancelled if it has neither emitted nor ended within a limit, and then fails on a thread of {@link
 * Schedulers#parallel()}. The limit may be passed by {@link #TICK_MILLIS} and what the timer's thread is late.
 *
 * <p>One subscriber, and an entry in a timer wheel that nobody is woken for: there are five a transaction and one for what is settled together (docs/decisions/0011).
 */
final class LimitedMono<V> extends MonoOperator<V, V> {

    private static final Logger log = LoggerFactory.getLogger(LimitedMono.class);

    private static final int TICK_MILLIS = 20;

    private static final HashedWheelTimer WHEEL = new HashedWheelTimer(
            work -> {
                Thread thread = new Thread(work, "onceflux-limits");
                thread.setDaemon(true);
                return thread;
            },
            TICK_MILLIS,
            TimeUnit.MILLISECONDS);

    private final Duration limit;

    LimitedMono(Mono<? extends V> source, Duration limit) {
        super(source);
        this.limit = limit;
    }

    @Override
    public void subscribe(CoreSubscriber<? super V> actual) {
        Limited<V> limited = new Limited<>(actual, limit);
        actual.onSubscribe(limited);
        if (limited.begin()) {
            source.subscribe(limited);
        }
    }

    private static final class Limited<V> extends Operators.DeferredSubscription
            implements CoreSubscriber<V>, TimerTask {

        private final CoreSubscriber<? super V> actual;
        private final Duration limit;

        /** By the first signal of the source, the limit, or a cancellation. */
        private final AtomicBoolean decided = new AtomicBoolean();

        private volatile @Nullable Timeout timeout;
        private boolean isTheSources;

        Limited(CoreSubscriber<? super V> actual, Duration limit) {
            this.actual = actual;
            this.limit = limit;
        }

        /** False if it is over already. */
        boolean begin() {
            timeout = WHEEL.newTimeout(this, limit.toNanos(), TimeUnit.NANOSECONDS);
            if (decided.get()) {
                cancelTimeout();
                return false;
            }
            return true;
        }

        private void cancelTimeout() {
            Timeout begun = timeout;
            if (begun != null) {
                begun.cancel();
            }
        }

        /** Whether the source may signal. */
        private boolean isInTime() {
            if (!isTheSources && decided.compareAndSet(false, true)) {
                isTheSources = true;
                cancelTimeout();
            }
            return isTheSources;
        }

        @Override
        public Context currentContext() {
            return actual.currentContext();
        }

        @Override
        public void onSubscribe(Subscription subscription) {
            var unused = set(subscription); // False if this is cancelled already: then the source is, too.
        }

        @Override
        public void onNext(V value) {
            if (isInTime()) {
                actual.onNext(value);
            } else {
                Operators.onNextDropped(value, currentContext());
            }
        }

        @Override
        public void onError(Throwable error) {
            if (isInTime()) {
                actual.onError(error);
            } else {
                log.debug("failed after its limit had passed, or after who waited for it had gone", error);
            }
        }

        @Override
        public void onComplete() {
            if (isInTime()) {
                actual.onComplete();
            }
        }

        @Override
        public void cancel() {
            if (decided.compareAndSet(false, true)) {
                cancelTimeout();
            }
            super.cancel();
        }

        /** The wheel has one thread for all: nothing runs on it, if anything else can. */
        @Override
        public void run(Timeout passed) {
            try {
                var unused = Schedulers.parallel().schedule(this::fail);
            } catch (RejectedExecutionException e) {
                fail();
            }
        }

        /** What the source has signalled until now is in time. */
        private void fail() {
            if (decided.compareAndSet(false, true)) {
                try {
                    super.cancel();
                } finally {
                    actual.onError(new LimitPassedException(limit));
                }
            }
        }
    }
}
