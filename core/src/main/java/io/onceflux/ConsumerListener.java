package io.onceflux;

import java.time.Duration;

/**
 * Told what a consumer does: for counters, logs and alarms. Every method does nothing by default.
 *
 * <p>It is called on the thread that the event happened on, often a driver's event loop: it must not block. What it throws
 * is logged and changes nothing. Calls for different messages may come at the same time.
 *
 * <p>Every delivery that was taken in a flux ends in exactly one of {@link #onOutcome} and {@link #onDropped}. Every outcome in a
 * flux is followed by {@link #onSettled} or {@link #onUnsettled}.
 */
public interface ConsumerListener {

    /** The listener that is told what one consumer does; asked for when the consumer is built. Default: this one. */
    default ConsumerListener forConsumer(String consumer) {
        return this;
    }

    /** The consumer has been built; it has not been used yet. */
    default void onBuilt(IdempotentConsumer<?> consumer) {}

    /**
     * The claims of an attempt are made, and the effects of those that are fresh come next. Not told where no claim was tried, because all
     * messages were duplicates by {@link RecentKeys}, unusable, or too old.
     *
     * @param messages how many are attempted in the transaction: the size of the batch, without copies
     * @param elapsed what that took, from the moment in which there was a connection. Waiting for another transaction that has one of the
     *     claims is a part of it; so is BEGIN, where both go together
     */
    default void onClaimed(int messages, Duration elapsed) {}

    /** A message has its outcome; the broker has not been told yet. {@code elapsed} counts from the first attempt. */
    default void onOutcome(Delivery<?> delivery, Outcome outcome, Duration elapsed) {}

    /** A message is a duplicate by {@link RecentKeys}, so that the database is not asked. {@link #onOutcome} follows. */
    default void onRecentKey(Delivery<?> delivery) {}

    /** An attempt failed and the message will be tried again after {@code delay}; {@code attempt} counts from 1. */
    default void onRetry(Delivery<?> delivery, FailureKind kind, int attempt, Duration delay, Throwable error) {}

    /** The connection died during COMMIT: whether it took place is not known until the claim has been tried again. */
    default void onUnknownCommit(Delivery<?> delivery, Throwable error) {}

    /**
     * Messages are being held: the database is away, or the set-up is broken ({@link FailureKind#BROKEN_SETUP} is worth an
     * alarm). Called once until {@link #onResumed}, and once more if what began as an outage, or a missing partition of the claim table, turns out to
     * be a broken set-up that holds others as well.
     */
    default void onHeld(FailureKind kind, Throwable error) {}

    /**
     * What {@link #onHeld} told is over: a transaction committed, or the database answers those who wait for it; after a broken set-up,
     * an effect was applied; where a partition is missing, whose absence shows in no other message, those that wait for it are done. Or
     * nothing is held any more, whatever became of it: then the next message shows whether it is mended.
     */
    default void onResumed() {}

    /** The source was told, and answered where it does. */
    default void onSettled(Delivery<?> delivery, Settlement settlement) {}

    /** The source could not be told. It is told of a dead letter again and again, until that is stored or {@link #onUnsettled}. */
    default void onSettleFailed(Delivery<?> delivery, Settlement settlement, Throwable error) {}

    /**
     * The source will not be told of the outcome any more, after {@link #onSettleFailed}: the message is delivered again, and is a
     * duplicate then, or tried again.
     */
    default void onUnsettled(Delivery<?> delivery, Settlement settlement) {}

    /**
     * A delivery is left to redelivery without an outcome: its channel is lost, the consumer is stopping, its limit on that has
     * passed, or the flux was cancelled.
     */
    default void onDropped(Delivery<?> delivery) {}

    /** Something is set up in a way that works but is likely not what is wanted; the sentence says what to change. */
    default void onWarning(String sentence) {}

    /** A flux of deliveries begins; nothing has been looked at yet. */
    default void onStart() {}

    /** A flux of deliveries, a call or a replay has ended, because the set-up of the consumer or of its source is wrong. */
    default void onRefused(InvalidSetupException error) {}

    /** A flux of deliveries has ended with another error, which is that of its source or of an operator in front of the consumer. */
    default void onFailed(Throwable error) {}

    /** A source begins, and nothing can come from it until {@link #onSourceConsuming}. Of a source that does not say so, nobody knows. */
    default void onSourceOpening(String source) {}

    /**
     * A source has lost its broker, or was cut off by it, and tries again; what it delivered before may not be current any more.
     *
     * @param source its name, such as {@code queue 'orders' at localhost:5672}; without credentials
     * @param reason for a person, in the broker's words where it had any
     */
    default void onSourceLost(String source, String reason, Duration untilNextTry) {}

    /**
     * A source's broker has accepted it as a consumer, for the first time or again. A source that is lost again at once, each time, is not
     * told as consuming in between.
     */
    default void onSourceConsuming(String source) {}

    /** A source was cancelled, or has ended. */
    default void onSourceClosed(String source) {}
}
