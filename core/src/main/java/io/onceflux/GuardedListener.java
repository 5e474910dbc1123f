package io.onceflux;

import static io.onceflux.Printable.text;

import java.time.Duration;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Logs what a person should know, keeps the health, and keeps what a user's listeners throw away from the messages. It never
 * throws.
 */
final class GuardedListener implements ConsumerListener {

    private static final Logger log = LoggerFactory.getLogger(IdempotentConsumer.class);

    private final String consumer;
    private final ConsumerListener health;
    private final List<ConsumerListener> users;

    private final HeldLog heldLog = new HeldLog(Duration.ofSeconds(10));

    GuardedListener(String consumer, ConsumerListener health, List<ConsumerListener> users) {
        this.consumer = consumer;
        this.health = health;
        this.users = List.copyOf(users);
    }

    /** The same for a part of the consumer, whose health is kept apart. */
    GuardedListener keeping(ConsumerListener healthOfPart) {
        return new GuardedListener(consumer, healthOfPart, users);
    }

    @Override
    public void onBuilt(IdempotentConsumer<?> built) {
        tell(listener -> listener.onBuilt(built));
    }

    @Override
    public void onClaimed(int messages, Duration elapsed) {
        tell(listener -> listener.onClaimed(messages, elapsed));
    }

    @Override
    public void onOutcome(Delivery<?> delivery, Outcome outcome, Duration elapsed) {
        if (outcome instanceof Outcome.Failed failed) {
            log(failed.failure().messageKey(), () -> logGivenUp(delivery, failed.failure()));
        } else if (outcome instanceof Outcome.Conflict conflict) {
            log(conflict.failure().messageKey(), () -> logGivenUp(delivery, conflict.failure()));
        }
        tell(listener -> listener.onOutcome(delivery, outcome, elapsed));
    }

    @Override
    public void onRecentKey(Delivery<?> delivery) {
        tell(listener -> listener.onRecentKey(delivery));
    }

    private void logGivenUp(Delivery<?> delivery, Failure failure) {
        log.warn(
                "{}: gave up message {} from {} after {} attempt(s), as {}{}: {}",
                name(),
                failure.messageKey() == null
                        ? "without a usable key"
                        : text(failure.messageKey().id()),
                text(delivery.origin()),
                failure.attempts(),
                failure.kind(),
                failure.sqlState() == null ? "" : " " + text(failure.sqlState()),
                text(failure.reason()));
    }

    private String name() {
        return text(consumer);
    }

    @Override
    public void onRetry(Delivery<?> delivery, FailureKind kind, int attempt, Duration delay, Throwable error) {
        if (log.isDebugEnabled()) {
            log(() -> log.debug(
                    "{}: attempt {} failed as {}, again in {}: {}",
                    name(),
                    attempt,
                    kind,
                    delay,
                    Printable.error(error)));
        }
        if (heldLog.lasts(kind)) {
            log(() -> logHeld(kind, Printable.error(Causes.root(error))));
        }
        tell(listener -> listener.onRetry(delivery, kind, attempt, delay, error));
    }

    @Override
    public void onUnknownCommit(Delivery<?> delivery, Throwable error) {
        log(() -> log.warn("{}: a COMMIT was not answered; the claim will tell: {}", name(), Printable.error(error)));
        tell(listener -> listener.onUnknownCommit(delivery, error));
    }

    @Override
    public void onHeld(FailureKind kind, Throwable error) {
        if (heldLog.begins(kind)) {
            log(() -> logHeld(kind, Printable.error(Causes.root(error))));
        }
        tell(listener -> listener.onHeld(kind, error));
    }

    private void logHeld(FailureKind kind, String cause) {
        if (kind == FailureKind.BROKEN_SETUP) {
            log.error("{}: messages are held until the set-up is mended: {}", name(), cause);
        } else {
            log.warn("{}: messages are held until the database takes them again: {}", name(), cause);
        }
    }

    @Override
    public void onResumed() {
        if (heldLog.ends()) {
            log(() -> log.info("{}: messages are not held any more", name()));
        }
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
                    name(),
                    text(delivery.origin()),
                    Printable.error(error));
        } else {
            log.warn(
                    "{}: the source of {} could not be told {}: {}",
                    name(),
                    text(delivery.origin()),
                    settlement.getClass().getSimpleName(),
                    Printable.error(error));
        }
    }

    @Override
    public void onUnsettled(Delivery<?> delivery, Settlement settlement) {
        tell(listener -> listener.onUnsettled(delivery, settlement));
    }

    @Override
    public void onDropped(Delivery<?> delivery) {
        tell(listener -> listener.onDropped(delivery));
    }

    @Override
    public void onWarning(String sentence) {
        log(() -> log.warn("{}: {}", name(), text(sentence)));
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
    public void onFailed(Throwable error) {
        tell(listener -> listener.onFailed(error));
    }

    @Override
    public void onSourceOpening(String source) {
        tell(listener -> listener.onSourceOpening(source));
    }

    @Override
    public void onSourceLost(String source, String reason, Duration untilNextTry) {
        log(() -> log.warn(
                "{}: {} is lost, and tried again in {} ms: {}",
                name(),
                text(source),
                untilNextTry.toMillis(),
                text(reason)));
        tell(listener -> listener.onSourceLost(source, reason, untilNextTry));
    }

    @Override
    public void onSourceConsuming(String source) {
        log(() -> log.info("{}: {} is consumed", name(), text(source)));
        tell(listener -> listener.onSourceConsuming(source));
    }

    @Override
    public void onSourceClosed(String source) {
        tell(listener -> listener.onSourceClosed(source));
    }

    /** Writes what a delivery or an exception of the user's own has to tell of itself. */
    private void log(Runnable writing) {
        log(null, writing);
    }

    private void log(@Nullable MessageKey key, Runnable writing) {
        guarded(
                "a delivery or an exception threw instead of describing itself",
                () -> LogContext.with(consumer, key, writing));
    }

    private void tell(Consumer<ConsumerListener> call) {
        guarded("the health could not be noted", () -> call.accept(health));
        for (ConsumerListener listener : users) {
            guarded("the listener threw", () -> call.accept(listener));
        }
    }

    private void guarded(String sentence, Runnable call) {
        try {
            call.run();
        } catch (Throwable e) { // An Error too: Reactor rethrows some of them, and the lane would hang.
            log.warn("{}: {}; the message is not affected", name(), sentence, Printable.withTrace(e));
        }
    }
}
