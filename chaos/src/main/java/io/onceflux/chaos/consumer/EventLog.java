package io.onceflux.chaos.consumer;

import io.onceflux.ConsumerListener;
import io.onceflux.Delivery;
import io.onceflux.FailureKind;
import io.onceflux.Outcome;
import io.onceflux.Settlement;
import java.time.Duration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes down what became of every copy of every message: the checker reads the outcomes, and the rest is what one needs to find out
 * why a message was lost or doubled.
 */
final class EventLog implements ConsumerListener {

    private static final Logger log = LoggerFactory.getLogger(EventLog.class);

    @Override
    public void onOutcome(Delivery<?> delivery, Outcome outcome, Duration elapsed) {
        log.info("{}", Told.line(delivery, outcome, elapsed));
    }

    @Override
    public void onRetry(Delivery<?> delivery, FailureKind kind, int attempt, Duration delay, Throwable error) {
        log.info("{} retry {} for {}: {}", Copy.of(delivery), attempt, kind, error.toString());
    }

    @Override
    public void onUnknownCommit(Delivery<?> delivery, Throwable error) {
        log.info("{} unknown commit: {}", Copy.of(delivery), error.toString());
    }

    @Override
    public void onSettleFailed(Delivery<?> delivery, Settlement settlement, Throwable error) {
        log.info("{} not settled: {}", Copy.of(delivery), error.toString());
    }

    @Override
    public void onDropped(Delivery<?> delivery) {
        log.info("{} dropped", Copy.of(delivery));
    }
}
