package io.onceflux;

import io.onceflux.Health.Status;
import io.onceflux.Health.Trouble;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Keeps what is wrong with a consumer now, and since when, from what the consumer tells its listener. */
final class HealthWatch implements ConsumerListener {

    private static final String DATABASE = "database";
    private static final String SETUP = "set-up";
    private static final String START = "start";
    private static final String DEAD_LETTERS = "dead letters";

    private final Duration downAfter;
    private final Clock clock;
    private final Map<String, Noted> noted = new ConcurrentHashMap<>();

    HealthWatch(Duration downAfter, Clock clock) {
        this.downAfter = downAfter;
        this.clock = clock;
    }

    /** @param lasting whether it will not mend itself */
    private record Noted(Trouble trouble, boolean lasting) {}

    Health health() {
        Instant tooLongAgo = clock.instant().minus(downAfter);
        List<Noted> now = List.copyOf(noted.values());
        boolean down =
                now.stream().anyMatch(one -> one.lasting || !one.trouble.since().isAfter(tooLongAgo));
        return new Health(
                now.isEmpty() ? Status.UP : down ? Status.DOWN : Status.DEGRADED,
                now.stream()
                        .map(Noted::trouble)
                        .sorted(Comparator.comparing(Trouble::since))
                        .toList());
    }

    void stopped() {
        arises("consumer", "it has been stopped", true);
    }

    @Override
    public void onHeld(FailureKind kind, Throwable error) {
        boolean broken = kind == FailureKind.BROKEN_SETUP;
        arises(broken ? SETUP : DATABASE, describe(error), broken);
    }

    @Override
    public void onResumed() {
        noted.remove(DATABASE);
        noted.remove(SETUP);
    }

    @Override
    public void onStart() {
        noted.remove(START);
    }

    @Override
    public void onRefused(InvalidSetupException error) {
        arises(START, String.valueOf(error.getMessage()), true);
    }

    @Override
    public void onSettled(Delivery<?> delivery, Settlement settlement) {
        if (settlement instanceof Settlement.DeadLetter) {
            noted.remove(DEAD_LETTERS);
        }
    }

    @Override
    public void onSettleFailed(Delivery<?> delivery, Settlement settlement, Throwable error) {
        if (settlement instanceof Settlement.DeadLetter) {
            arises(DEAD_LETTERS, describe(error), false);
        }
    }

    @Override
    public void onSourceLost(String source, String reason, Duration untilNextTry) {
        arises(source, reason, false);
    }

    @Override
    public void onSourceConsuming(String source) {
        noted.remove(source);
    }

    @Override
    public void onSourceClosed(String source) {
        noted.remove(source);
    }

    /** What goes on keeps its beginning, and tells the latest reason. */
    private void arises(String what, String reason, boolean lasting) {
        Instant now = clock.instant();
        noted.compute(
                what,
                (name, before) ->
                        new Noted(new Trouble(what, reason, before == null ? now : before.trouble.since()), lasting));
    }

    private static String describe(Throwable error) {
        return Causes.describe(Causes.root(error));
    }
}
