package io.onceflux;

import io.onceflux.Health.Status;
import io.onceflux.Health.Trouble;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.Collections;
import java.util.Comparator;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;

/** Keeps what is wrong with a consumer now, and since when, from what the consumer tells its listener. */
final class HealthWatch implements ConsumerListener {

    private static final String DATABASE = "database";
    private static final String SETUP = "set-up";
    private static final String DEAD_LETTERS = "dead letters";

    private final Duration downAfter;
    private final Clock clock;
    private final Map<Object, Noted> noted = new ConcurrentHashMap<>();
    private final Set<Delivery<?>> notDeadLettered = Collections.newSetFromMap(new IdentityHashMap<>());
    private final EndedFluxes ended = new EndedFluxes();
    private final Calls calls = new Calls();

    HealthWatch(Duration downAfter, Clock clock) {
        this.downAfter = downAfter;
        this.clock = clock;
    }

    /**
     * @param status what it makes the consumer; {@link Status#DOWN} if it will not mend itself
     * @param until when it is forgotten, if it is not told again
     */
    private record Noted(Trouble trouble, Status status, Instant until) {

        Status after(Instant tooLongAgo) {
            return trouble.since().isAfter(tooLongAgo) ? status : Status.DOWN;
        }
    }

    Health health() {
        Instant now = clock.instant();
        Instant tooLongAgo = now.minus(downAfter);
        List<Noted> known =
                noted.values().stream().filter(one -> now.isBefore(one.until)).toList();
        List<Trouble> overForGood = ended.troubles();
        Status status = Stream.concat(
                        overForGood.stream().map(over -> Status.DOWN),
                        known.stream().map(one -> one.after(tooLongAgo)))
                .max(Comparator.naturalOrder())
                .orElse(Status.UP);
        List<Trouble> troubles = Stream.concat(
                        overForGood.stream(), known.stream().map(Noted::trouble))
                .sorted(Comparator.comparing(Trouble::since))
                .toList();
        return new Health(status, troubles);
    }

    void stopped() {
        arises("consumer", "consumer", "it has been stopped", Status.DOWN);
    }

    /** What one subscription tells, kept apart from what others tell. */
    OfFlux ofFlux(Object deliveries) {
        return new OfFlux(deliveries);
    }

    /** What callers are told who wait for the answer. */
    Calls ofCalls() {
        return calls;
    }

    @Override
    public void onOutcome(Delivery<?> delivery, Outcome outcome, Duration elapsed) {
        if (outcome.isDone()) {
            calls.work();
        }
    }

    @Override
    public void onHeld(FailureKind kind, Throwable error) {
        boolean broken = kind == FailureKind.BROKEN_SETUP;
        String what = broken ? SETUP : DATABASE;
        arises(what, what, describe(error), broken ? Status.DOWN : Status.DEGRADED);
    }

    @Override
    public void onResumed() {
        noted.remove(DATABASE);
        noted.remove(SETUP);
    }

    @Override
    public void onSettleFailed(Delivery<?> delivery, Settlement settlement, Throwable error) {
        if (settlement instanceof Settlement.DeadLetter) {
            String reason = describe(error);
            synchronized (notDeadLettered) {
                notDeadLettered.add(delivery);
                arises(DEAD_LETTERS, DEAD_LETTERS, reason, Status.DEGRADED);
            }
        }
    }

    @Override
    public void onSettled(Delivery<?> delivery, Settlement settlement) {
        noMoreTries(delivery, settlement);
    }

    @Override
    public void onUnsettled(Delivery<?> delivery, Settlement settlement) {
        noMoreTries(delivery, settlement);
    }

    private void noMoreTries(Delivery<?> delivery, Settlement settlement) {
        if (settlement instanceof Settlement.DeadLetter) {
            synchronized (notDeadLettered) {
                if (notDeadLettered.remove(delivery) && notDeadLettered.isEmpty()) {
                    noted.remove(DEAD_LETTERS);
                }
            }
        }
    }

    private void arises(Object key, String what, String reason, Status status) {
        arises(key, what, reason, status, Instant.MAX);
    }

    /** What goes on keeps its beginning, and tells the latest reason. */
    private void arises(Object key, String what, String reason, Status status, Instant until) {
        Instant now = clock.instant();
        noted.compute(key, (same, before) -> {
            boolean goesOn = before != null && now.isBefore(before.until);
            return new Noted(new Trouble(what, reason, goesOn ? before.trouble.since() : now), status, until);
        });
    }

    private static String describe(Throwable error) {
        return Causes.describe(Causes.root(error));
    }

    /** One subscription to a flux of deliveries, and the sources in it. */
    final class OfFlux implements ConsumerListener {

        private final Object deliveries;
        private volatile long endedBefore = Long.MIN_VALUE;
        private volatile boolean over;

        private OfFlux(Object deliveries) {
            this.deliveries = deliveries;
        }

        private record SourceOf(OfFlux flux, String name) {}

        private record StartOf(OfFlux flux) {}

        @Override
        public void onStart() {
            endedBefore = ended.startsAgain(deliveries);
            arises(new StartOf(this), "start", "the set-up is being looked at", Status.STARTING);
        }

        /** The set-up is as it should be. */
        void checked() {
            noted.remove(new StartOf(this));
        }

        @Override
        public void onSourceOpening(String source) {
            if (!over) {
                arises(new SourceOf(this, source), source, "its broker has not accepted it yet", Status.STARTING);
            }
        }

        @Override
        public void onRefused(InvalidSetupException error) {
            ended.add(deliveries, new Trouble("start", String.valueOf(error.getMessage()), clock.instant()));
        }

        @Override
        public void onFailed(Throwable error) {
            ended.add(deliveries, new Trouble("deliveries", describe(error), clock.instant()));
        }

        @Override
        public void onSourceLost(String source, String reason, Duration untilNextTry) {
            if (!over) {
                arises(new SourceOf(this, source), source, reason, Status.DEGRADED);
            }
        }

        @Override
        public void onSourceConsuming(String source) {
            noted.remove(new SourceOf(this, source));
        }

        @Override
        public void onSourceClosed(String source) {
            noted.remove(new SourceOf(this, source));
        }

        /** @param completed without an error, and not because it was cancelled */
        void ended(boolean completed) {
            over = true;
            checked();
            noted.keySet().removeIf(key -> key instanceof SourceOf source && source.flux == this);
            if (completed) {
                ended.forgetBefore(endedBefore);
            }
        }
    }

    /**
     * Calls, and replays: nobody is left who would find out that what they failed with is mended. So it is forgotten when there was no
     * sign of it for as long as makes a consumer down; a probe that has taken all calls away lets some come again then.
     */
    final class Calls implements ConsumerListener {

        private static final String REFUSED = "calls are refused";
        private static final String FAIL = "calls fail";
        private static final String FAIL_BY_SETUP = "calls fail by the set-up";

        private volatile boolean troubled;

        private Calls() {}

        @Override
        public void onRefused(InvalidSetupException error) {
            arises(REFUSED, "start", String.valueOf(error.getMessage()), Status.DOWN);
        }

        /** The database was away for longer than a caller can wait, or the set-up is broken; other failures are the message's own. */
        void failed(Failure failure) {
            if (failure.kind() == FailureKind.INFRASTRUCTURE) {
                arises(FAIL, "calls", failure.reason(), Status.DEGRADED);
            } else if (failure.kind() == FailureKind.BROKEN_SETUP) {
                arises(FAIL_BY_SETUP, "calls", failure.reason(), Status.DOWN);
            }
        }

        private void arises(String key, String what, String reason, Status status) {
            HealthWatch.this.arises(key, what, reason, status, clock.instant().plus(downAfter));
            troubled = true;
        }

        private void work() {
            if (troubled) {
                troubled = false;
                noted.remove(REFUSED);
                noted.remove(FAIL);
                noted.remove(FAIL_BY_SETUP);
            }
        }
    }
}
