package io.onceflux;

import java.time.Instant;
import java.util.List;

/**
 * Whether a consumer can do its work now, for a health endpoint or a probe.
 *
 * @param status the worst of the troubles, {@link Status#UP} without any
 * @param troubles what is wrong, the longest first; empty if nothing is
 */
public record Health(Status status, List<Trouble> troubles) {

    /** Makes the list immutable. */
    public Health {
        troubles = List.copyOf(troubles);
    }

    /** How well the consumer does. */
    public enum Status {
        /** Messages are handled as they come. */
        UP,
        /** Something is away or fails, and is tried again; messages wait and none is lost. */
        DEGRADED,
        /**
         * Something has been away for longer than {@link ConsumerBuilder#downAfter}, or will not mend itself: the set-up is broken
         * or the consumer was stopped. Still nothing is lost.
         */
        DOWN
    }

    /**
     * One thing that is wrong.
     *
     * @param what the part: {@code database}, {@code set-up}, {@code dead letters}, {@code consumer}, or the source by its own name
     * @param reason a sentence for a person, without credentials
     * @param since when it began
     */
    public record Trouble(String what, String reason, Instant since) {}
}
