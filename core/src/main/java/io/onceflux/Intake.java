package io.onceflux;

import io.r2dbc.spi.Connection;
import java.time.Duration;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
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
 * @param keepsDeadLetters whether it keeps dead letters itself, in a table: a source then needs no place for them
 * @param claims where it keeps its claims: a source may have a part in them, or refuse those that it does not fit; null for a
 *     subscriber that has none
 * @param claimsKept how long it keeps a claim: what comes again later is applied again; null if it has not said so
 * @param connections of its database
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
        boolean keepsDeadLetters,
        @Nullable Claims claims,
        @Nullable Duration claimsKept,
        Connections connections,
        Mono<Void> ready,
        Mono<Void> stopRequested,
        Supplier<Runnable> awaitClose,
        ConsumerListener listener) {

    /** Connections to the consumer's database. */
    public interface Connections {

        /**
         * Runs work on a connection outside of any transaction, and gives it back.
         *
         * @return what the work returns; its error, or that of getting the connection
         */
        <R> Mono<R> use(Function<Connection, Mono<R>> work);
    }

    /** Refuses claims that follow the order of their source, for a source that has no order. */
    public void requireOwnOrder(String source) {
        Require.that(
                claims == null || !claims.followSource(),
                "consumer '%s' keeps its claims in %s, which needs positions in a log: %s has none"
                        .formatted(consumer, claims, source));
    }

    /** The intake of the subscription, or one for a subscriber that is no consumer of OnceFlux. */
    public static Intake from(ContextView context) {
        return context.hasKey(Intake.class) ? context.get(Intake.class) : ANYBODY;
    }

    Context into(Context context) {
        return context.put(Intake.class, this);
    }

    private static final Connections NONE = new Connections() {
        @Override
        public <R> Mono<R> use(Function<Connection, Mono<R>> work) {
            return Mono.error(new IllegalStateException("the subscriber has no database"));
        }
    };

    private static final Intake ANYBODY = new Intake(
            "unnamed",
            false,
            1,
            250,
            Duration.ZERO,
            false,
            null,
            null,
            NONE,
            Mono.empty(),
            Mono.never(),
            () -> () -> {},
            new ConsumerListener() {});
}
