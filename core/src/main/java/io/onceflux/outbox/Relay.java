package io.onceflux.outbox;

import io.onceflux.InvalidSetupException;
import io.onceflux.ShortTransactions;
import io.r2dbc.spi.ConnectionFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Sends what is in an {@link Outbox}, as many instances side by side as there are.
 *
 * <pre>{@code
 * Relay relay = Relay.of(outbox)
 *         .to("receipt", message -> http.post().uri("/receipts")
 *                 .headers(headers -> headers.set("Idempotency-Key", message.idempotencyKey()))
 *                 .send(...).response())
 *         .build(pool);
 * relay.run().subscribe();   // and stop() at the end
 * }</pre>
 *
 * <p>An entry is sent at least once, each time with the same idempotency key. Those of a kind with an equal key are sent one after the other,
 * whichever instances do it, in the order in which they were appended: where transactions overlap that need not be the order of their
 * commits, and what is committed late comes late. None is passed over. No transaction is open while one is sent. One that cannot be sent is tried again after pauses that double, and what has the same key
 * waits behind it; after so many attempts it is parked, with the reason, until somebody {@linkplain Outbox#resume resumes} it.
 *
 * <p>An instance that dies leaves what it had taken to the others once the {@linkplain Builder#lease lease} is over. Not promised: that two
 * instances never send an entry at the same time. One that was frozen in the middle for longer than the lease may.
 */
public final class Relay {

    private final RelaySettings settings;
    private final RelayStop stop = new RelayStop();

    Relay(RelaySettings settings) {
        this.settings = settings;
    }

    /** A relay for an outbox. */
    public static Builder of(Outbox outbox) {
        return new Builder(Objects.requireNonNull(outbox, "outbox"));
    }

    /**
     * Sends what is there and what comes, until {@link #stop}. May run once at a time. Whoever cancels it leaves what it has taken to others
     * right away, and what was under way is sent again.
     *
     * @return what became of each entry, once that is written down; on the driver's threads. {@link InvalidSetupException} if the table is
     *     missing, does not fit, or may not be read and written; no other error ends it
     */
    public Flux<Relayed> run() {
        return Flux.defer(() -> new RelayRun(settings, stop).run()).onErrorStop();
    }

    /**
     * Ends a run: nothing more is taken, what is under way is sent and written down, the rest is left to others.
     *
     * @return completes when the run has ended
     */
    public Mono<Void> stop() {
        return stop.ask();
    }

    /** Describes a relay. */
    public static final class Builder {

        private static final Logger log = LoggerFactory.getLogger(Relay.class);
        private static final Duration DATABASE_LIMIT = Duration.ofSeconds(10);

        private final Outbox outbox;
        private final Map<String, Target> targets = new LinkedHashMap<>();
        private int workers = 4;
        private int batchSize = 100;
        private Duration sendLimit = Duration.ofSeconds(10);
        private Duration lease = Duration.ofMinutes(1);
        private int maxAttempts = 50;
        private Duration minBackoff = Duration.ofSeconds(1);
        private Duration maxBackoff = Duration.ofMinutes(5);
        private Duration pollInterval = Duration.ofSeconds(1);
        private @Nullable Duration keepSent = Duration.ofDays(7);
        private boolean parkedBlocksItsKey;
        private @Nullable ConnectionFactory listenOn;
        private final List<RelayListener> listeners = new ArrayList<>();
        private Consumer<? super Throwable> onError = error -> log.warn("the outbox cannot be worked off", error);

        private Builder(Outbox outbox) {
            this.outbox = outbox;
        }

        /** Where entries of a kind are sent. Entries of kinds that this relay has no target for are left to others. */
        public Builder to(String kind, Target target) {
            require(!Objects.requireNonNull(kind, "kind").isBlank(), "the kind of a target must not be blank");
            require(
                    targets.put(kind, Objects.requireNonNull(target, "target")) == null,
                    "kind '" + kind + "' has two targets");
            return this;
        }

        /** How many batches of each kind are sent side by side by this instance, each with a connection now and then. Default 4. */
        public Builder workers(int count) {
            this.workers = count;
            return this;
        }

        /** How many entries a worker takes at once, at most; those with different keys are sent side by side. Default 100. */
        public Builder batchSize(int entries) {
            this.batchSize = entries;
            return this;
        }

        /** How long a target may take for an entry; after that it counts as not sent. Default 10 s. */
        public Builder sendLimit(Duration limit) {
            this.sendLimit = limit;
            return this;
        }

        /** For how long a worker has what it takes, so that it is not sent by another. At least twice the send limit. Default 1 min. */
        public Builder lease(Duration length) {
            this.lease = length;
            return this;
        }

        /**
         * How often an entry is tried before it is parked. Default 50: with the default pauses for two to three hours, so that a usual outage of
         * the target parks nothing.
         */
        public Builder maxAttempts(int attempts) {
            this.maxAttempts = attempts;
            return this;
        }

        /** The first pause after a failed attempt, and the longest; they double in between. Default 1 s and 5 min. */
        public Builder backoff(Duration min, Duration max) {
            this.minBackoff = min;
            this.maxBackoff = max;
            return this;
        }

        /** How often it is looked for new entries where nobody says that there are some. Default 1 s. */
        public Builder pollInterval(Duration interval) {
            this.pollInterval = interval;
            return this;
        }

        /** How long entries that were sent are kept: so long, one that is appended once more is not sent again. Default 7 days. */
        public Builder keepSent(Duration time) {
            this.keepSent = time;
            return this;
        }

        /** Never removes what was sent. */
        public Builder keepSentForEver() {
            this.keepSent = null;
            return this;
        }

        /** An entry that is parked holds up those of its kind and key. Default: they go on without it. */
        public Builder parkedBlocksItsKey() {
            this.parkedBlocksItsKey = true;
            return this;
        }

        /**
         * Connections to be told on that there are new entries ({@link Outbox#tellingRelays}); one of them is kept for that. They must lead to
         * PostgreSQL itself: a pooler of transactions, as PgBouncer may be, loses what is told. Default: none, it looks at the interval.
         */
        public Builder listenOn(ConnectionFactory direct) {
            this.listenOn = direct;
            return this;
        }

        /** Told why the table could not be worked off, each time; it goes on after a pause. Default: a warning in the log. */
        public Builder onError(Consumer<? super Throwable> told) {
            this.onError = Objects.requireNonNull(told, "onError");
            return this;
        }

        /** Is told what happens. May be called several times; each listener is told. */
        public Builder listener(RelayListener listener) {
            listeners.add(Objects.requireNonNull(listener, "listener"));
            return this;
        }

        /**
         * Makes the relay.
         *
         * @param connections to the database of the outbox
         * @throws InvalidSetupException for a value that is out of range, and without a target
         */
        public Relay build(ConnectionFactory connections) {
            require(!targets.isEmpty(), "the relay has no target: use to(kind, target)");
            require(workers >= 1 && workers <= 256, "workers must be from 1 to 256, but is " + workers);
            require(batchSize >= 1 && batchSize <= 1_000, "batchSize must be from 1 to 1000, but is " + batchSize);
            require(maxAttempts >= 1, "maxAttempts must be at least 1, but is " + maxAttempts);
            positive("sendLimit", sendLimit);
            positive("pollInterval", pollInterval);
            positive("the first backoff", minBackoff);
            require(
                    maxBackoff.compareTo(minBackoff) >= 0,
                    "the longest backoff must not be less than the first, but is " + maxBackoff);
            require(
                    lease.compareTo(sendLimit.multipliedBy(2)) >= 0,
                    "lease must be at least twice the sendLimit of %s, but is %s".formatted(sendLimit, lease));
            if (keepSent != null) {
                positive("keepSent", keepSent);
            }
            return new Relay(new RelaySettings(
                    outbox,
                    ShortTransactions.on(connections, DATABASE_LIMIT),
                    targets,
                    workers,
                    batchSize,
                    sendLimit,
                    lease,
                    maxAttempts,
                    minBackoff,
                    maxBackoff,
                    pollInterval,
                    keepSent,
                    parkedBlocksItsKey,
                    listenOn,
                    onError,
                    listeners.stream()
                            .map(listener -> listener.forRelay(outbox.table().toString(), Set.copyOf(targets.keySet())))
                            .toList()));
        }

        private static void positive(String property, Duration value) {
            require(value.toMillis() >= 1, property + " must be at least 1 ms, but is " + value);
        }

        private static void require(boolean holds, String sentence) {
            if (!holds) {
                throw new InvalidSetupException(sentence);
            }
        }
    }
}
