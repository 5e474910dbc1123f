package io.onceflux;

import java.time.Duration;
import java.util.function.Supplier;
import reactor.core.publisher.Mono;
import reactor.util.context.Context;
import reactor.util.context.ContextView;

/**
 * What a source of deliveries may know about the consumer that subscribes to it. The consumer puts it into the Reactor
 * context of its subscription; a source that does without it works too.
 *
 * @param consumer the consumer's name
 * @param takesIdsFromSource whether the consumer takes each message's id from {@link Delivery#id}: a source that finds none would
 *     have every message given up, and had better refuse
 * @param lanes how many messages it handles side by side
 * @param maxInFlight how many deliveries it takes before one of them is settled
 * @param longestHold how long it may keep a delivery unsettled at most while its database answers, once the delivery's turn has
 *     come: the conflict timeout and one attempt
 * @param ready completes when the consumer's database can be written to, and not before: a source waits for it before it
 *     subscribes again, so that an outage costs a message at most one delivery
 * @param stopRequested completes when the consumer stops: a source then asks its broker for no more, and keeps the way for
 *     answers open until it is cancelled
 * @param awaitClose asked by a source, when it opens, that has to take leave of its broker before the process may end; it runs what
 *     it gets once it has, and {@link IdempotentConsumer#stop} waits for that
 * @param listener the consumer's listener
 */
public record Intake(
        String consumer,
        boolean takesIdsFromSource,
        int lanes,
        int maxInFlight,
        Duration longestHold,
        Mono<Void> ready,
        Mono<Void> stopRequested,
        Supplier<Runnable> awaitClose,
        ConsumerListener listener) {

    /** The intake of the subscription, or one for a subscriber that is no consumer of OnceFlux. */
    public static Intake from(ContextView context) {
        return context.hasKey(Intake.class) ? context.get(Intake.class) : ANYBODY;
    }

    Context into(Context context) {
        return context.put(Intake.class, this);
    }

    private static final Intake ANYBODY = new Intake(
            "unnamed",
            false,
            1,
            250,
            Duration.ZERO,
            Mono.empty(),
            Mono.never(),
            () -> () -> {},
            new ConsumerListener() {});
}
