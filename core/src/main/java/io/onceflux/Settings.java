package io.onceflux;

import static io.onceflux.Require.atMost;
import static io.onceflux.Require.positive;
import static io.onceflux.Require.that;

import java.time.Duration;
import java.util.List;
import org.springframework.transaction.annotation.Isolation;

/** Everything a consumer can be told but its functions; checked when it is made. Defaults are at {@link ConsumerBuilder}. */
record Settings(
        String consumer,
        int lanes,
        int maxBatch,
        int maxInFlight,
        Isolation isolation,
        Duration timeLimit,
        Duration lockTimeout,
        Duration controlLimit,
        Duration settleLimit,
        Duration startLimit,
        Duration processBudget,
        FailurePolicy failurePolicy,
        GuardedListener listener,
        List<HandlingObserver> observers) {

    private static final int LONGEST_NAME = 100;
    private static final int MOST_IN_A_BATCH = 10_000;
    static final int MOST_IN_FLIGHT = 1_000_000;

    Settings {
        observers = List.copyOf(observers);
        String fault = MessageKey.faultOf(consumer);
        that(fault == null, "the consumer's name cannot be stored: it " + fault);
        that(
                consumer.length() <= LONGEST_NAME,
                "the consumer's name must have at most %d characters, but is '%s'".formatted(LONGEST_NAME, consumer));
        positive("lanes", lanes);
        positive("maxBatch", maxBatch);
        atMost("maxBatch", maxBatch, MOST_IN_A_BATCH);
        positive("maxInFlight", maxInFlight);
        atMost("maxInFlight", maxInFlight, MOST_IN_FLIGHT);
        positive("timeLimit", timeLimit);
        positive("lockTimeout", lockTimeout);
        that(
                lockTimeout.toMillis() <= Integer.MAX_VALUE,
                "lockTimeout must be at most %s, PostgreSQL's limit, but is %s"
                        .formatted(Duration.ofMillis(Integer.MAX_VALUE), lockTimeout));
        positive("controlLimit", controlLimit);
        positive("settleLimit", settleLimit);
        positive("startLimit", startLimit);
        positive("processBudget", processBudget);
        that(
                maxInFlight > lanes,
                "maxInFlight (%d) must be more than lanes (%d): one message has to wait while every lane is at work"
                        .formatted(maxInFlight, lanes));
        that(
                lockTimeout.compareTo(timeLimit) < 0,
                ("lockTimeout (%s) must be shorter than timeLimit (%s), or a message that only waits for another"
                                + " transaction counts as a failing effect")
                        .formatted(lockTimeout, timeLimit));
    }
}
