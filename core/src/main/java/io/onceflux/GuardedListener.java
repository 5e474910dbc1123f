package io.onceflux;

import java.time.Duration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Logs what a person should know, and keeps what a user's listener throws away from the messages. */
final class GuardedListener implements ConsumerListener {

    private static final Logger log = LoggerFactory.getLogger(IdempotentConsumer.class);

    private final String consumer;
    private final ConsumerListener users;

    GuardedListener(String consumer, ConsumerListener users) {
        this.consumer = consumer;
        this.users = users;
    }

    @Override
    public void onOutcome(Delivery<?> delivery, Outcome outcome, Duration elapsed) {
        if (outcome instanceof Outcome.Failed failed) {
            log(() -> logGivenUp(delivery, failed.failure()));
        }
        tell(() -> users.onOutcome(delivery, outcome, elapsed));
    }

    private void logGivenUp(Delivery<?> delivery, Failure failure) {
        log.warn(
                "{}: gave up message {} from {} after {} attempt(s), as {}{}: {}",
                consumer,
                failure.messageKey() == null
                        ? "without a usable key"
                        : failure.messageKey().id(),
                delivery.origin(),
                failure.attempts(),
                failure.kind(),
                failure.sqlState() == null ? "" : " " + failure.sqlState(),
                failure.reason());
    }

    @Override
    public void onRetry(Delivery<?> delivery, FailureKind kind, int attempt, Duration delay, Throwable error) {
        log.debug(
                "{}: attempt {} failed as {}, again in {}: {}", consumer, attempt, kind, delay, Causes.describe(error));
        tell(() -> users.onRetry(delivery, kind, attempt, delay, error));
    }

    @Override
    public void onUnknownCommit(Delivery<?> delivery, Throwable error) {
        log.warn("{}: a COMMIT was not answered; the claim will tell: {}", consumer, Causes.describe(error));
        tell(() -> users.onUnknownCommit(delivery, error));
    }

    @Override
    public void onHeld(FailureKind kind, Throwable error) {
        String cause = Causes.describe(Causes.root(error));
        if (kind == FailureKind.BROKEN_SETUP) {
            log.error("{}: messages are held until the set-up is mended: {}", consumer, cause);
        } else {
            log.warn("{}: messages are held until the database takes them again: {}", consumer, cause);
        }
        tell(() -> users.onHeld(kind, error));
    }

    @Override
    public void onResumed() {
        log.info("{}: messages are handled again", consumer);
        tell(users::onResumed);
    }

    @Override
    public void onSettleFailed(Delivery<?> delivery, Settlement settlement, Throwable error) {
        log(() -> logNotSettled(delivery, settlement, error));
        tell(() -> users.onSettleFailed(delivery, settlement, error));
    }

    private void logNotSettled(Delivery<?> delivery, Settlement settlement, Throwable error) {
        if (settlement instanceof Settlement.DeadLetter) { // Its lane stands still until somebody mends the cause.
            log.error(
                    "{}: the dead letter of {} could not be stored: {}",
                    consumer,
                    delivery.origin(),
                    Causes.describe(error));
        } else {
            log.warn(
                    "{}: the source of {} could not be told {}: {}",
                    consumer,
                    delivery.origin(),
                    settlement.getClass().getSimpleName(),
                    Causes.describe(error));
        }
    }

    @Override
    public void onDropped(Delivery<?> delivery) {
        tell(() -> users.onDropped(delivery));
    }

    @Override
    public void onWarning(String sentence) {
        log.warn("{}: {}", consumer, sentence);
        tell(() -> users.onWarning(sentence));
    }

    /** Writes what a delivery of the user's own has to tell of itself. */
    private void log(Runnable writing) {
        guarded("a delivery threw instead of describing itself", writing);
    }

    private void tell(Runnable call) {
        guarded("the listener threw", call);
    }

    private void guarded(String sentence, Runnable call) {
        try {
            call.run();
        } catch (Throwable e) { // An Error too: Reactor rethrows some of them, and the lane would hang.
            log.warn("{}: {}; the message is not affected", consumer, sentence, e);
        }
    }
}
