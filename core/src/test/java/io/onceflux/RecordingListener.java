package io.onceflux;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** A listener that keeps what it is told. */
public final class RecordingListener implements ConsumerListener {

    public record Retry(
            Delivery<?> delivery,
            FailureKind kind,
            int attempt,
            @Nullable String sqlState,
            Throwable error) {}

    public record Lost(String source, String reason, Duration untilNextTry) {}

    public final List<Lost> lost = new CopyOnWriteArrayList<>();
    public final List<Outcome> outcomes = new CopyOnWriteArrayList<>();
    public final List<Retry> retries = new CopyOnWriteArrayList<>();
    public final List<Throwable> unknownCommits = new CopyOnWriteArrayList<>();
    public final List<FailureKind> held = new CopyOnWriteArrayList<>();
    public final AtomicInteger resumed = new AtomicInteger();
    public final List<Throwable> settleFailures = new CopyOnWriteArrayList<>();
    public final List<Delivery<?>> unsettled = new CopyOnWriteArrayList<>();
    public final AtomicInteger starts = new AtomicInteger();
    public final List<InvalidSetupException> refused = new CopyOnWriteArrayList<>();
    public final List<Throwable> failed = new CopyOnWriteArrayList<>();
    public final List<Delivery<?>> dropped = new CopyOnWriteArrayList<>();
    public final List<String> warnings = new CopyOnWriteArrayList<>();

    @Override
    public void onOutcome(Delivery<?> delivery, Outcome outcome, Duration elapsed) {
        outcomes.add(outcome);
    }

    @Override
    public void onRetry(Delivery<?> delivery, FailureKind kind, int attempt, Duration delay, Throwable error) {
        retries.add(new Retry(delivery, kind, attempt, SqlStates.stateOf(error), error));
    }

    @Override
    public void onUnknownCommit(Delivery<?> delivery, Throwable error) {
        unknownCommits.add(error);
    }

    @Override
    public void onHeld(FailureKind kind, Throwable error) {
        held.add(kind);
    }

    @Override
    public void onResumed() {
        resumed.incrementAndGet();
    }

    @Override
    public void onSettleFailed(Delivery<?> delivery, Settlement settlement, Throwable error) {
        settleFailures.add(error);
    }

    @Override
    public void onUnsettled(Delivery<?> delivery, Settlement settlement) {
        unsettled.add(delivery);
    }

    @Override
    public void onStart() {
        starts.incrementAndGet();
    }

    @Override
    public void onRefused(InvalidSetupException error) {
        refused.add(error);
    }

    @Override
    public void onFailed(Throwable error) {
        failed.add(error);
    }

    @Override
    public void onSourceLost(String source, String reason, Duration untilNextTry) {
        lost.add(new Lost(source, reason, untilNextTry));
    }

    @Override
    public void onDropped(Delivery<?> delivery) {
        dropped.add(delivery);
    }

    @Override
    public void onWarning(String sentence) {
        warnings.add(sentence);
    }

    public List<@Nullable String> sqlStatesOfRetries() {
        return retries.stream().map(Retry::sqlState).toList();
    }

    public long count(Class<? extends Outcome> type) {
        return outcomes.stream().filter(type::isInstance).count();
    }
}
