package io.onceflux;

import java.time.Duration;
import java.util.List;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Logs what a person should know, keeps the health, and keeps what a user's listeners throw away from the messages. */
final class GuardedListener implements ConsumerListener {

    private static final Logger log = LoggerFactory.getLogger(IdempotentConsumer.class);

    private final String consumer;
    private final HealthWatch health;
    private final List<ConsumerListener> users;

    GuardedListener(String consumer, HealthWatch health, List<ConsumerListener> users) {
        this.consumer = consumer;
        this.health = health;
        this.users = List.copyOf(users);
    }

    @Override
    public void onOutcome(Delivery<?> delivery, Outcome outcome, Duration elapsed) {
        if (outcome instanceof Outcome.Failed failed) {
            log(() -> logGivenUp(delivery, failed.failure()));
        }
        tell(listener -> listener.onOutcome(delivery, outcome, elapsed));
    }

    private void logGivenUp(Delivery<?> delivery, Failure failure) {
        log.warn(
                "{}: gave up message {} from {} after {} attempt(s), as {}{}: {}",
                consumer,
                failure.messageKey() == null
                        ? "without a usable key"
                        : printable(failure.messageKey().id()),
                delivery.origin(),
                failure.attempts(),
                failure.kind(),
                failure.sqlState() == null ? "" : " " + failure.sqlState(),
                printable(failure.reason()));
    }

    /** What a sender wrote must not look like lines of this log. */
    private static String printable(String text) {
        return text.replaceAll("\\p{Cntrl}", "?");
    }

    @Override
    public void onRetry(Delivery<?> delivery, FailureKind kind, int attempt, Duration delay, Throwable error) {
        log.debug(
                "{}: attempt {} failed as {}, again in {}: {}", consumer, attempt, kind, delay, Causes.describe(error));
        tell(listener -> listener.onRetry(delivery, kind, attempt, delay, error));
    }

    @Override
    public void onUnknownCommit(Delivery<?> delivery, Throwable error) {
        log.warn("{}: a COMMIT was not answered; the claim will tell: {}", consumer, Causes.describe(error));
        tell(listener -> listener.onUnknownCommit(delivery, error));
    }

    @Override
    public void onHeld(FailureKind kind, Throwable error) {
        String cause = Causes.describe(Causes.root(error));
        if (kind == FailureKind.BROKEN_SETUP) {
            log.error("{}: messages are held until the set-up is mended: {}", consumer, cause);
        } else {
            log.warn("{}: messages are held until the database takes them again: {}", consumer, cause);
        }
        tell(listener -> listener.onHeld(kind, error));
    }

    @Override
    public void onResumed() {
        log.info("{}: messages are handled again", consumer);
        tell(ConsumerListener::onResumed);
    }

    @Override
    public void onSettled(Delivery<?> delivery, Settlement settlement) {
        tell(listener -> listener.onSettled(delivery, settlement));
    }

    @Override
    public void onSettleFailed(Delivery<?> delivery, Settlement settlement, Throwable error) {
        log(() -> logNotSettled(delivery, settlement, error));
        tell(listener -> listener.onSettleFailed(delivery, settlement, error));
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
        tell(listener -> listener.onDropped(delivery));
    }

    @Override
    public void onWarning(String sentence) {
        log.warn("{}: {}", consumer, sentence);
        tell(listener -> listener.onWarning(sentence));
    }

    @Override
    public void onStart() {
        tell(ConsumerListener::onStart);
    }

    @Override
    public void onRefused(InvalidSetupException error) {
        tell(listener -> listener.onRefused(error));
    }

    @Override
    public void onSourceLost(String source, String reason, Duration untilNextTry) {
        log.warn("{}: {} is lost, and tried again in {} ms: {}", consumer, source, untilNextTry.toMillis(), reason);
        tell(listener -> listener.onSourceLost(source, reason, untilNextTry));
    }

    @Override
    public void onSourceConsuming(String source) {
        log.info("{}: {} is consumed", consumer, source);
        tell(listener -> listener.onSourceConsuming(source));
    }

    @Override
    public void onSourceClosed(String source) {
        tell(listener -> listener.onSourceClosed(source));
    }

    /** Writes what a delivery of the user's own has to tell of itself. */
    private void log(Runnable writing) {
        guarded("a delivery threw instead of describing itself", writing);
    }

    private void tell(Consumer<ConsumerListener> call) {
        call.accept(health);
        for (ConsumerListener listener : users) {
            guarded("the listener threw", () -> call.accept(listener));
        }
    }

    private void guarded(String sentence, Runnable call) {
        try {
            call.run();
        } catch (Throwable e) { // An Error too: Reactor rethrows some of them, and the lane would hang.
            log.warn("{}: {}; the message is not affected", consumer, sentence, e);
        }
    }
}
