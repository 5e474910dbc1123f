package io.onceflux;

import static io.onceflux.Require.given;
import static io.onceflux.Require.positive;
import static io.onceflux.Require.that;

import io.onceflux.postgres.ClaimTable;
import io.onceflux.postgres.DeadLetterTable;
import io.r2dbc.spi.ConnectionFactory;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.springframework.transaction.annotation.Isolation;

/**
 * Describes an {@link IdempotentConsumer}. An effect and a way to identify messages are needed; everything else has a default.
 *
 * @param <T> the payload
 */
public final class ConsumerBuilder<T> {

    private final String consumer;
    private boolean identified;
    private @Nullable Function<? super T, String> idOf;
    private @Nullable Function<? super T, ?> orderOf;
    private @Nullable EffectRunner<T> effect;
    private @Nullable Integer maxBatch;
    private boolean together;
    private Claims claims = Claims.in(ClaimTable.processedMessages());
    private @Nullable RecentKeys recentKeys;
    private @Nullable DeadLetterTable deadLetterTable;
    private int lanes = 16;
    private @Nullable Integer maxInFlight;
    private Isolation isolation = Isolation.DEFAULT;
    private Duration timeLimit = Duration.ofSeconds(30);
    private Duration lockTimeout = Duration.ofSeconds(10);
    private Duration controlLimit = Duration.ofSeconds(10);
    private Duration settleLimit = Duration.ofSeconds(10);
    private Duration startLimit = Duration.ofMinutes(1);
    private Duration processBudget = Duration.ofSeconds(30);
    private Duration downAfter = Duration.ofMinutes(1);
    private FailurePolicy failurePolicy = FailurePolicy.defaults();
    private final List<ConsumerListener> listeners = new ArrayList<>();

    ConsumerBuilder(String consumer) {
        this.consumer = consumer;
    }

    /**
     * Takes the id of a message from its payload: the producer's event id, or a natural key such as the number of the order.
     * Never something that a redelivery gets anew, such as a delivery tag or the time.
     *
     * @param id called on the thread that emits the delivery; null, blank or a throw makes the message a dead letter
     */
    public ConsumerBuilder<T> identifiedBy(Function<? super T, String> id) {
        this.idOf = given("identifiedBy", id);
        this.identified = true;
        return this;
    }

    /** Takes the id that the source found on the message: {@link Delivery#id()}. */
    public ConsumerBuilder<T> identifiedByMessageId() {
        this.idOf = null;
        this.identified = true;
        return this;
    }

    /**
     * Keeps messages with an equal ordering key in the order of their delivery, within this process. Default: the
     * {@link Delivery#orderingKey} of the source, such as the key of a record; where it has none the message's id, so that
     * different messages may overtake each other.
     *
     * @param order called on the thread that emits the delivery; its {@code hashCode} chooses the lane
     */
    public ConsumerBuilder<T> orderedBy(Function<? super T, ?> order) {
        this.orderOf = given("orderedBy", order);
        return this;
    }

    /** What a message does. */
    public ConsumerBuilder<T> effect(Effect<? super T> theEffect) {
        this.effect = EffectRunner.oneByOne(given("effect", theEffect));
        this.together = false;
        return this;
    }

    /** What the messages of a batch do, with statements over all of them, in place of {@link #effect}. */
    public ConsumerBuilder<T> batchEffect(BatchEffect<T> theEffect) {
        this.effect = EffectRunner.together(given("batchEffect", theEffect));
        this.together = true;
        return this;
    }

    /**
     * Group commit: a lane takes up to so many of the messages that have queued up while it was busy, and claims and applies them in
     * one transaction. Nothing waits for a batch to fill. Messages that fail in a batch are tried again in smaller ones, until the one
     * at fault stands alone. Default 1, a transaction for each message; with {@link #batchEffect} 256. At most 10,000.
     *
     * <p>The messages of a batch share the transaction: what the effect of one sets for it ({@code SET LOCAL}, {@code SET TRANSACTION},
     * {@code set_config(..., true)}) the effects of the next ones see.
     */
    public ConsumerBuilder<T> maxBatch(int messages) {
        this.maxBatch = messages;
        return this;
    }

    /** How many messages, or batches of them, are handled side by side, each on a connection of its own. Default 16. */
    public ConsumerBuilder<T> lanes(int count) {
        this.lanes = count;
        return this;
    }

    /**
     * How many deliveries are taken from the source and not yet settled, queued or at work. More than lanes. Default 256, or twice
     * {@code lanes} times {@code maxBatch} if that is more, so that each lane can gather a batch while it is at work on one.
     */
    public ConsumerBuilder<T> maxInFlight(int deliveries) {
        this.maxInFlight = deliveries;
        return this;
    }

    /** Where claims are kept. Default {@link ClaimTable#processedMessages()}. */
    public ConsumerBuilder<T> claimTable(ClaimTable table) {
        return claims(Claims.in(given("claimTable", table)));
    }

    /** Where claims are kept, if not in a table of PostgreSQL. */
    public ConsumerBuilder<T> claims(Claims keptElsewhere) {
        this.claims = given("claims", keptElsewhere);
        return this;
    }

    /**
     * Finds duplicates of what this process has lately seen committed without asking the database. Default: none, the database is
     * asked about every message.
     */
    public ConsumerBuilder<T> recentKeys(RecentKeys keys) {
        this.recentKeys = given("recentKeys", keys);
        return this;
    }

    /**
     * Keeps dead letters in a table of the database, instead of where the source keeps them. A dead letter is committed before the
     * source is told that its message is done. They are looked at and replayed through {@link IdempotentConsumer#deadLetters}.
     * Deliveries that have no {@link Delivery#body} are left to their source. Default: none, the source keeps them.
     */
    public ConsumerBuilder<T> deadLetterTable(DeadLetterTable table) {
        this.deadLetterTable = given("deadLetterTable", table);
        return this;
    }

    /** The isolation level of the transactions. Default: the server's, which is READ COMMITTED unless it was changed. */
    public ConsumerBuilder<T> isolation(Isolation level) {
        this.isolation = given("isolation", level);
        return this;
    }

    /**
     * How long claim and effect of one attempt may take before they are rolled back. It never cuts a COMMIT that was sent.
     * Default 30 s.
     */
    public ConsumerBuilder<T> timeLimit(Duration limit) {
        this.timeLimit = given("timeLimit", limit);
        return this;
    }

    /**
     * PostgreSQL's {@code lock_timeout} of the transactions: how long a duplicate waits for the transaction that has its claim,
     * and the effect for any lock. Then it is tried again. Must be shorter than {@link #timeLimit}. Default 10 s.
     */
    public ConsumerBuilder<T> lockTimeout(Duration timeout) {
        this.lockTimeout = given("lockTimeout", timeout);
        return this;
    }

    /**
     * How long getting a connection, BEGIN, COMMIT and ROLLBACK may each take before the connection is given up. A COMMIT given
     * up so is found out about through the claim. Default 10 s.
     */
    public ConsumerBuilder<T> controlLimit(Duration limit) {
        this.controlLimit = given("controlLimit", limit);
        return this;
    }

    /** How long the source may take to be told, before that counts as failed. Default 10 s. */
    public ConsumerBuilder<T> settleLimit(Duration limit) {
        this.settleLimit = given("settleLimit", limit);
        return this;
    }

    /** How long the database may be away when the consumer starts, before the start fails. Default 1 minute. */
    public ConsumerBuilder<T> startLimit(Duration limit) {
        this.startLimit = given("startLimit", limit);
        return this;
    }

    /**
     * How long {@link IdempotentConsumer#process} may try, and a replay of {@link IdempotentConsumer#deadLetters} with each letter. Where
     * the server does not answer, the outcome comes up to a second later; a COMMIT that was sent is waited for. Default 30 s.
     */
    public ConsumerBuilder<T> processBudget(Duration budget) {
        this.processBudget = given("processBudget", budget);
        return this;
    }

    /**
     * How long the database, the broker or the place for dead letters may be away before {@link IdempotentConsumer#health} says
     * down instead of degraded. Default 1 minute.
     */
    public ConsumerBuilder<T> downAfter(Duration limit) {
        this.downAfter = given("downAfter", limit);
        return this;
    }

    /** What is done about failures. Default {@link FailurePolicy#defaults()}. */
    public ConsumerBuilder<T> failurePolicy(FailurePolicy policy) {
        this.failurePolicy = given("failurePolicy", policy);
        return this;
    }

    /**
     * Is told what happens. May be called several times; each listener is told. Default: what a person should know goes to the log,
     * whether there is a listener or not.
     */
    public ConsumerBuilder<T> listener(ConsumerListener listener) {
        listeners.add(given("listener", listener));
        return this;
    }

    /**
     * Makes the consumer. It opens no connection: the database is looked at when the first flux is subscribed.
     *
     * @param connections of the database that has the claims and takes the effects; a pool of more connections than lanes
     * @throws InvalidSetupException with a sentence that names the setting that is missing, out of range, or in contradiction
     *     with another
     */
    public IdempotentConsumer<T> build(ConnectionFactory connections) {
        given("connections", connections);
        positive("downAfter", downAfter);
        HealthWatch health = new HealthWatch(downAfter, Clock.systemUTC());
        int batch = maxBatch != null ? maxBatch : together ? 256 : 1;
        int inFlight = maxInFlight != null
                ? maxInFlight
                : (int) Math.min(Settings.MOST_IN_FLIGHT, Math.max(256, 2L * lanes * batch));
        Settings settings = new Settings(
                consumer,
                lanes,
                batch,
                inFlight,
                isolation,
                timeLimit,
                lockTimeout,
                controlLimit,
                settleLimit,
                startLimit,
                processBudget,
                failurePolicy,
                new GuardedListener(
                        consumer,
                        health,
                        listeners.stream()
                                .map(listener -> listener.forConsumer(consumer))
                                .toList()));
        that(
                identified,
                ("consumer '%s' has no way to identify a message: use identifiedBy(payload -> id), or"
                                + " identifiedByMessageId() where the producer sets an id")
                        .formatted(consumer));
        EffectRunner<T> theEffect = effect;
        if (theEffect == null) {
            throw new InvalidSetupException(
                    "consumer '%s' has no effect: use effect((payload, db) -> ...)".formatted(consumer));
        }
        if (claims.followSource()) {
            requireSourcesOrder();
        }
        return new IdempotentConsumer<>(
                settings,
                connections,
                claims,
                new Identify<>(consumer, idOf, orderOf, claims.followSource()),
                theEffect,
                recentKeys,
                deadLetterTable,
                health);
    }

    /** With another order a later message could be claimed first, and the earlier one would then pass for a duplicate. */
    private void requireSourcesOrder() {
        that(
                idOf == null,
                "consumer '%s' keeps its claims in %s, where a message is identified by its place in the source: use"
                                .formatted(consumer, claims)
                        + " identifiedByMessageId() instead of identifiedBy(...)");
        that(
                orderOf == null,
                "consumer '%s' keeps its claims in %s, which needs the order of the source: leave out orderedBy(...)"
                        .formatted(consumer, claims));
        that(
                deadLetterTable == null,
                ("consumer '%s' keeps its claims in %s, where a dead letter is passed for good: one in a deadLetterTable could not be"
                                + " replayed. Leave dead letters to the source, whose replay makes them new messages")
                        .formatted(consumer, claims));
    }
}
