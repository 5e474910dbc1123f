package io.onceflux;

import java.time.Instant;
import java.util.List;

/**
 * Whether a consumer can do its work now, for a health endpoint or a probe.
 *
 * <p>A flux of deliveries that was refused or ended with an error is a trouble until the same flux, the object that {@code transform} was
 * called on, is subscribed to again, or one that began later has completed. What calls fail with is forgotten when a message is done,
 * or after {@link ConsumerBuilder#downAfter} without another such call: a probe that keeps calls away lets some come again then.
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
        /** Messages are handled as they come; or no flux of deliveries has begun yet, and calls are taken. */
        UP,
        /**
         * A flux of deliveries has begun, and its first message cannot have come yet: the set-up is being looked at, or the source has not been
         * accepted by its broker.
         */
        STARTING,
        /** Something is away or fails, and is tried again; messages wait and none is lost. */
        DEGRADED,
        /**
         * Something has been away, or a start has lasted, for longer than {@link ConsumerBuilder#downAfter}, or will not mend itself: the set-up
         * is broken or the consumer was stopped. Still nothing is lost.
         */
        DOWN
    }

    /**
     * One thing that is wrong.
     *
     * @param what the part: {@code database}; {@code set-up}; {@code dead letters}; {@code start}, which goes on or was refused; {@code deliveries},
     *     a flux that ended with an error; {@code calls}, whose time ended while the database was away or the set-up broken; {@code consumer}, if it has been
     *     stopped; or the source by its own name
     * @param reason a sentence for a person, without credentials
     * @param since when it began
     */
    public record Trouble(String what, String reason, Instant since) {}
}
