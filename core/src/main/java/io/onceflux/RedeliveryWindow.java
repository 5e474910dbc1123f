package io.onceflux;

import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * Refuses messages that are so old that the claim of an earlier delivery may be gone. It is asked before each attempt: a message may have
 * waited for long.
 */
final class RedeliveryWindow {

    /** How far the clocks of a producer, this process and the database may be apart. */
    static final Duration CLOCKS = Duration.ofMinutes(5);

    private final @Nullable Duration window;
    private final Clock clock;

    /** @param window how long after it came to be a message may be run; null to refuse none */
    RedeliveryWindow(@Nullable Duration window, Clock clock) {
        this.window = window;
        this.clock = clock;
    }

    /** Refuses none. */
    static RedeliveryWindow none() {
        return new RedeliveryWindow(null, Clock.systemUTC());
    }

    /** Why a message is too old; null if it is not, also because it has no time. */
    @Nullable
    String tooOld(@Nullable Instant sent) {
        return window != null && sent != null && sent.isBefore(clock.instant().minus(window))
                ? "the message is of %s, longer ago than the redelivery window of %s: if it was applied, its claim may be gone"
                        .formatted(sent, window)
                : null;
    }

    /** Why a message is too new; null if it is not, also because it has no time. */
    @Nullable
    String yetToCome(@Nullable Instant sent) {
        return window != null && sent != null && sent.isAfter(clock.instant().plus(CLOCKS))
                ? "the message is of %s, which is yet to come: for how long its claim will be needed is not known"
                        .formatted(sent)
                : null;
    }
}
