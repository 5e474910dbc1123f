package io.onceflux;

import java.util.List;
import reactor.util.context.Context;
import reactor.util.context.ContextView;

/**
 * Surrounds what a consumer does with messages, for tracing. It is called on the thread on which a message's turn comes, often a driver's event
 * loop: it must not block. What it throws is logged, and the message goes on without it.
 */
public interface HandlingObserver {

    /**
     * The turn of some messages has come: they are going to be attempted, in one transaction if none of them fails.
     *
     * @param deliveries one, or those of a batch, in their order
     * @param caller the Reactor context of the caller of {@link IdempotentConsumer#process}; empty for messages of a flux, whose subscriber
     *     has nothing to do with them
     */
    Handling begin(String consumer, List<? extends Delivery<?>> deliveries, ContextView caller);

    /** The handling of messages, from their turn to their end. */
    interface Handling {

        /** What the statements of their claims, their {@link BatchEffect}, BEGIN and COMMIT have for a context. */
        Context ofAll(Context context);

        /**
         * What the effect of one of them has for a context.
         *
         * @param key the message's key
         */
        Context ofOne(Delivery<?> delivery, MessageKey key, Context context);

        /** A message has its outcome. The source has not been told yet. */
        void onOutcome(Delivery<?> delivery, Outcome outcome);

        /** An attempt has failed, and the message is tried again. */
        void onRetry(Delivery<?> delivery, FailureKind kind, Throwable error);

        /** It is over: the source has been told. What has no outcome by now is left to redelivery. */
        void ended();
    }
}
