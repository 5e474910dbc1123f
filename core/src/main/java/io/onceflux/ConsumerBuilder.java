package io.onceflux;

import static io.onceflux.Require.given;
import static io.onceflux.Require.positive;
import static io.onceflux.Require.that;

import io.onceflux.postgres.AdmissionTable;
import io.onceflux.postgres.ClaimTable;
import io.onceflux.postgres.DeadLetterTable;
import io.onceflux.postgres.UniqueKey;
import io.r2dbc.spi.ConnectionFactory;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiFunction;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import org.springframework.r2dbc.core.DatabaseClient;
import org.springframework.transaction.annotation.Isolation;
import reactor.core.publisher.Mono;

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
    private @Nullable Fingerprint<T> fingerprint;
    private @Nullable Function<Claims, EffectRunner<T>> effect;
    private @Nullable Integer maxBatch;
    private boolean together;
    private @Nullable Claims claims;
    private boolean conditional;
    private boolean noRowsAreDuplicates;
    private boolean naturalKey;
    private @Nullable RecentKeys recentKeys;
    private @Nullable Retention retention;
    private @Nullable Duration redeliveryWindow;
    private @Nullable Function<? super T, @Nullable Instant> sentAt;
    private @Nullable AdmissionTable admissionTable;
    private @Nullable ClaimTime<T> claimTime;
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
    private final List<HandlingObserver> observers = new ArrayList<>();

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

    /**
     * Notices a message that has the id of another one and other content: it becomes {@link Outcome.Conflict}, a dead letter, instead of a
     * duplicate. What is compared is kept with the claim, in 8 bytes, so the claim table needs a column for it
     * ({@link ClaimTable#withFingerprintColumn}). A claim without one equals any message. Default: not compared.
     *
     * @param content what is the same in every delivery of a message; null if unknown. Called on the thread that emits the delivery
     */
    public ConsumerBuilder<T> fingerprintedBy(Function<? super T, @Nullable String> content) {
        given("fingerprintedBy", content);
        this.fingerprint = (delivery, payload) -> {
            String text = Identify.call("fingerprintedBy", content, payload);
            return text == null ? null : Fingerprint.ofText(text);
        };
        return this;
    }

    /**
     * The same, comparing the body as it arrived, byte for byte: {@link Delivery#body}. For producers that send the same bytes again. A record
     * of Kafka without a value (a tombstone) differs from one with an empty value. A message whose delivery has no body, such as one of
     * {@link Delivery#of} with another payload than bytes, is given up as one without a key is: nothing could be compared.
     */
    public ConsumerBuilder<T> fingerprintedByBody() {
        this.fingerprint = (delivery, payload) -> Fingerprint.ofBody(delivery);
        return this;
    }

    /** What a message does. */
    public ConsumerBuilder<T> effect(Effect<? super T> theEffect) {
        Effect<? super T> each = given("effect", theEffect);
        this.effect = claimsOfIt -> EffectRunner.oneByOne(each, claimsOfIt.areKept());
        this.noRowsAreDuplicates = false;
        this.together = false;
        this.conditional = false;
        return this;
    }

    /** What the messages of a batch do, with statements over all of them, in place of {@link #effect}. */
    public ConsumerBuilder<T> batchEffect(BatchEffect<T> theEffect) {
        BatchEffect<T> all = given("batchEffect", theEffect);
        this.effect = claimsOfIt -> EffectRunner.together(all, claimsOfIt.areKept());
        this.noRowsAreDuplicates = false;
        this.together = true;
        this.conditional = false;
        return this;
    }

    /**
     * What a message does, where the statement itself decides whether it happens, in place of {@link #effect}. No claim is written, unless
     * {@link #claimTable} or {@link #claims} says where. The id of a message then only names it: it may be in several messages.
     *
     * @param meaning what it means that no row was affected
     */
    public ConsumerBuilder<T> conditionalEffect(ConditionalEffect<? super T> theEffect, NoRows meaning) {
        NoRows always = given("the meaning of no rows", meaning);
        conditionalEffect(theEffect, (payload, db) -> Mono.just(always));
        this.noRowsAreDuplicates = always == NoRows.DUPLICATE;
        return this;
    }

    /**
     * The same, where a look at the database tells what it means that no row was affected.
     *
     * @param meaning asked in the transaction of the effect, once it has affected no row; emits what that means, or {@link PermanentFailure}
     *     with the reason
     */
    public ConsumerBuilder<T> conditionalEffect(
            ConditionalEffect<? super T> theEffect,
            BiFunction<? super T, DatabaseClient, ? extends Publisher<NoRows>> meaning) {
        ConditionalEffect<? super T> each = given("conditionalEffect", theEffect);
        BiFunction<? super T, DatabaseClient, ? extends Publisher<NoRows>> asked =
                given("the meaning of no rows", meaning);
        this.effect = claimsOfIt -> EffectRunner.conditional(each, asked, claimsOfIt.areKept());
        this.together = false;
        this.conditional = true;
        this.noRowsAreDuplicates = false;
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

    /**
     * Which bucket a claim belongs to, where the claim table {@linkplain ClaimTable#partitionedBy has partitions}: that of this time. Only of a
     * field that is the same whenever the message is sent or delivered, for as long as it may come again, such as when an order was placed;
     * <b>with another time a message is another one, and is applied again.</b> Not the time of a broker or of sending, which a replay changes.
     *
     * <p>A message that is older than the oldest partition, or further ahead than {@link io.onceflux.postgres.Buckets#ahead}, is a dead letter.
     *
     * @param time called on the thread that emits the delivery; null or a throw makes the message a dead letter
     */
    public ConsumerBuilder<T> bucketedBy(Function<? super T, @Nullable Instant> time) {
        this.claimTime = ClaimTime.byPayload(given("bucketedBy", time));
        return this;
    }

    /** The same, by the time that is a part of each id, and so cannot change. */
    public ConsumerBuilder<T> bucketedByKey(KeyTime time) {
        this.claimTime = ClaimTime.byKey(given("bucketedByKey", time));
        return this;
    }

    /** Where claims are kept, if not in a table of PostgreSQL. */
    public ConsumerBuilder<T> claims(Claims keptElsewhere) {
        this.claims = given("claims", keptElsewhere);
        this.naturalKey = false;
        return this;
    }

    /**
     * Writes no claims, because a unique constraint of the user's tables makes the {@link #conditionalEffect} happen once. It is looked at
     * before the first message.
     */
    public ConsumerBuilder<T> naturalKey(UniqueKey key) {
        this.claims = new WithoutClaims(given("naturalKey", key));
        this.naturalKey = true;
        return this;
    }

    /**
     * Writes no claims, because it does no harm that the effect happens again: it sets a value. Every delivery is
     * {@link Outcome.Applied}; one that comes late sets an old value again, where no version guards it.
     */
    public ConsumerBuilder<T> withoutClaims() {
        this.claims = new WithoutClaims(null);
        this.naturalKey = false;
        return this;
    }

    /**
     * Finds duplicates of what this process has lately seen committed without asking the database. Default: none, the database is
     * asked about every message.
     *
     * <p>Where no claims are kept, only for a {@link #conditionalEffect} whose {@link NoRows} are always duplicates; its messages then have
     * ids of their own.
     */
    public ConsumerBuilder<T> recentKeys(RecentKeys keys) {
        this.recentKeys = given("recentKeys", keys);
        return this;
    }

    /**
     * Says what removes the claims of this consumer. It is not run by the consumer, but compared: with {@link #redeliveryWindow}, and with how
     * long a topic of Kafka keeps its messages. Default: none, claims are kept for ever.
     */
    public ConsumerBuilder<T> retention(Retention ofClaims) {
        this.retention = given("retention", ofClaims);
        return this;
    }

    /**
     * How long after a message came to be it may come again: redelivered after an outage, or replayed. Claims must not be removed sooner
     * ({@link #retention}); keep them for some time longer than this, for the clocks, and for what an attempt takes. Default: not declared.
     */
    public ConsumerBuilder<T> redeliveryWindow(Duration window) {
        this.redeliveryWindow = given("redeliveryWindow", window);
        return this;
    }

    /**
     * When a message came to be, as its producer says, the same in every delivery. One that is older than the {@link #redeliveryWindow} is
     * not run: its claim may be gone. It becomes a dead letter, also if it was never applied, as nobody knows. Not the time that a broker
     * put on it, which is another one where the message is replayed. Default: none, and a message that comes later than it should is applied
     * again.
     *
     * <p>What is more than five minutes ahead of this process's clock is a dead letter, too.
     *
     * @param time called on the thread that emits the delivery; null or a throw makes the message a dead letter
     */
    public ConsumerBuilder<T> sentAt(Function<? super T, @Nullable Instant> time) {
        this.sentAt = given("sentAt", time);
        return this;
    }

    /**
     * Notes what is refused because it is too old, older than the {@link #redeliveryWindow} or than the {@linkplain ClaimTable#partitionedBy partitions}
     * of the claims, and applies what of it somebody {@linkplain Admissions#admit admits}, once, when it comes again. A row for each message that
     * is refused; the others cost nothing by it. Default: none, and nothing that is too old is applied.
     */
    public ConsumerBuilder<T> admissionTable(AdmissionTable table) {
        this.admissionTable = given("admissionTable", table);
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
     * Surrounds the handling of messages, for tracing, such as with {@link io.onceflux.micrometer.MessageObservations}. May be called several
     * times; what the later ones put into the Reactor context covers that of the earlier ones. Default: none.
     */
    public ConsumerBuilder<T> observer(HandlingObserver observer) {
        observers.add(given("observer", observer));
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
                                .toList()),
                observers);
        that(
                identified,
                ("consumer '%s' has no way to identify a message: use identifiedBy(payload -> id), or"
                                + " identifiedByMessageId() where the producer sets an id")
                        .formatted(consumer));
        Function<Claims, EffectRunner<T>> theEffect = effect;
        if (theEffect == null) {
            throw new InvalidSetupException(
                    "consumer '%s' has no effect: use effect((payload, db) -> ...)".formatted(consumer));
        }
        that(
                conditional || !naturalKey,
                ("consumer '%s' has a naturalKey, but an effect that does not say how many rows it affected: use"
                                + " conditionalEffect(...)")
                        .formatted(consumer));
        Claims kept = claims != null
                ? claims
                : conditional ? new WithoutClaims(null) : Claims.in(ClaimTable.processedMessages());
        RedeliveryWindow window = window();
        that(
                recentKeys == null || kept.areKept() || noRowsAreDuplicates,
                ("consumer '%s' has recentKeys, but keeps no claims, so that a message may have the id of another: what comes later would"
                                + " pass for a duplicate")
                        .formatted(consumer));
        that(
                fingerprint == null || kept.keepFingerprints(),
                ("consumer '%s' compares fingerprints, but %s has no place for them: use"
                                + " ClaimTable.withFingerprintColumn(\"fingerprint\")")
                        .formatted(consumer, kept));
        that(
                !kept.haveBuckets() || claimTime != null,
                ("consumer '%s' keeps its claims in %s, which has partitions, and does not say which is whose: use bucketedByKey(...)"
                                + " or bucketedBy(...)")
                        .formatted(consumer, kept));
        that(
                kept.haveBuckets() || claimTime == null,
                "consumer '%s' has bucketedBy, but keeps its claims in %s, which has no buckets: leave it out"
                        .formatted(consumer, kept));
        if (kept.followSource()) {
            requireSourcesOrder(kept);
        }
        that(
                retention == null || kept.areKept(),
                "consumer '%s' has a retention, but keeps no claims: leave it out".formatted(consumer));
        that(
                retention == null || retention.isOf(consumer, kept),
                "consumer '%s' keeps its claims in %s, but its retention is for other ones: %s"
                        .formatted(consumer, kept, retention));
        IdempotentConsumer<T> built = new IdempotentConsumer<>(
                settings,
                connections,
                admissionTable == null ? kept : admitting(kept, admissionTable),
                new Identify<>(consumer, idOf, orderOf, kept.followSource(), fingerprint, sentAt, claimTime),
                theEffect.apply(kept),
                recentKeys,
                window,
                retention == null ? null : retention.kept(),
                warnings(),
                deadLetterTable,
                health);
        settings.listener().onBuilt(built);
        return built;
    }

    private Claims admitting(Claims kept, AdmissionTable table) {
        that(
                kept.areKept() && !kept.followSource() && (kept.haveBuckets() || sentAt != null),
                "consumer '%s' has an admissionTable, but takes no message for too old: that needs sentAt, or claims in partitions"
                        .formatted(consumer));
        return new AdmittingClaims(kept, table);
    }

    private RedeliveryWindow window() {
        Duration window = redeliveryWindow;
        if (window == null) {
            that(
                    sentAt == null,
                    "consumer '%s' has sentAt, but no redeliveryWindow, beyond which a message is too old"
                            .formatted(consumer));
            return RedeliveryWindow.none();
        }
        positive("redeliveryWindow", window);
        if (retention != null) {
            Duration least = window.plus(controlLimit).plus(timeLimit).plus(RedeliveryWindow.CLOCKS);
            that(
                    retention.kept().compareTo(least) >= 0,
                    ("consumer '%s' has a redeliveryWindow of %s, but its claims are kept for %s: what comes again after that would be"
                                    + " applied again. Keep them for %s at least: an attempt takes time, and clocks differ")
                            .formatted(consumer, window, retention.kept(), least));
        }
        return new RedeliveryWindow(window, Clock.systemUTC());
    }

    private List<String> warnings() {
        List<String> warnings = new ArrayList<>();
        if (retention != null && redeliveryWindow == null) {
            warnings.add("claims are removed after %s, and no redeliveryWindow says how long messages may come again"
                    .formatted(retention.kept()));
        }
        if (retention != null && sentAt == null && claimTime == null) {
            warnings.add(
                    "messages have no time (sentAt): one that comes again after its claim was removed, %s after it was made, is"
                                    .formatted(retention.kept())
                            + " applied again");
        }
        return warnings;
    }

    /** With another order a later message could be claimed first, and the earlier one would then pass for a duplicate. */
    private void requireSourcesOrder(Claims kept) {
        that(
                idOf == null,
                "consumer '%s' keeps its claims in %s, where a message is identified by its place in the source: use"
                                .formatted(consumer, kept)
                        + " identifiedByMessageId() instead of identifiedBy(...)");
        that(
                orderOf == null,
                "consumer '%s' keeps its claims in %s, which needs the order of the source: leave out orderedBy(...)"
                        .formatted(consumer, kept));
        that(
                retention == null && redeliveryWindow == null && sentAt == null,
                ("consumer '%s' keeps its claims in %s, which are never removed: leave out retention(...), redeliveryWindow(...) and"
                                + " sentAt(...)")
                        .formatted(consumer, kept));
        that(
                recentKeys == null,
                ("consumer '%s' keeps its claims in %s, which can be told to forget, and recentKeys would not hear of it: leave them out; a"
                                + " redelivery costs no more than a message there")
                        .formatted(consumer, kept));
        that(
                deadLetterTable == null,
                ("consumer '%s' keeps its claims in %s, where a dead letter is passed for good: one in a deadLetterTable could not be"
                                + " replayed. Leave dead letters to the source, whose replay makes them new messages")
                        .formatted(consumer, kept));
    }
}
