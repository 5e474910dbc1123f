package io.onceflux;

import static io.onceflux.Require.given;

import io.onceflux.Settling.Answer;
import io.onceflux.StartupCheck.PendingException;
import io.onceflux.postgres.DeadLetterTable;
import io.r2dbc.spi.ConnectionFactory;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.springframework.r2dbc.connection.ConnectionFactoryUtils;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.SignalType;

/**
 * Applies the effect of each message once, however often the message is delivered.
 *
 * <p>Claim and effect commit in one transaction or not at all; the source is told only after the commit. A consumer is a
 * function for {@code Flux.transform}: deliveries go in, outcomes come out, and nothing blocks.
 *
 * <pre>{@code
 * Flux<Outcome> outcomes = deliveries.transform(loyalty);
 * }</pre>
 *
 * <p>It is immutable but for its being stopped, and may be used for several fluxes at once. It runs on the threads that
 * deliver messages and on the driver's event loops.
 *
 * <p>Not promised: an order of outcomes between different lanes, and an order of messages across redeliveries and processes.
 *
 * @param <T> the payload
 */
public final class IdempotentConsumer<T> implements Function<Flux<Delivery<T>>, Flux<Outcome>> {

    private final Settings settings;
    private final ConnectionFactory connections;
    private final Claims claims;
    private final Identify<T> identify;
    private final RedeliveryWindow window;
    private final @Nullable Duration claimsKept;
    private final HealthWatch health;
    private final GuardedListener calls;
    private final @Nullable TableDeadLetters deadLetters;
    private final Lifecycle lifecycle = new Lifecycle();
    private final StartupCheck startupCheck;
    private final Probe probe;
    private final Attempts<T> attempts;
    private final Attempts<T> replays;
    private final Settling settling;
    private final Lanes lanes;
    private final ConsumerPipeline<T> pipeline;
    private final Intake.Connections connectionsOfSource;

    IdempotentConsumer(
            Settings settings,
            ConnectionFactory connections,
            Claims claims,
            Identify<T> identify,
            EffectRunner<T> effect,
            @Nullable RecentKeys recentKeys,
            RedeliveryWindow window,
            @Nullable Duration claimsKept,
            List<String> warnings,
            @Nullable DeadLetterTable deadLetterTable,
            HealthWatch health) {
        this.health = health;
        this.settings = settings;
        this.calls = settings.listener().keeping(health.ofCalls());
        this.connections = connections;
        this.claims = claims;
        this.identify = identify;
        this.window = window;
        this.claimsKept = claimsKept;
        Progress progress = new Progress(settings.failurePolicy().alarmAfter(), settings.listener());
        Transactions transactions = new Transactions(connections, settings.isolation(), settings.controlLimit());
        this.connectionsOfSource = transactions::withoutTransaction;
        this.deadLetters =
                deadLetterTable == null ? null : new TableDeadLetters(deadLetterTable, transactions, settings);
        this.startupCheck =
                new StartupCheck(settings, connections, transactions, claims, warnings, deadLetters, progress);
        this.probe = new Probe(settings, transactions, claims, progress);
        ProcessOnce<T> processOnce =
                new ProcessOnce<>(transactions, claims, effect, settings.lockTimeout(), window, settings.listener());
        this.attempts = attempts(processOnce, progress, window, recentKeys);
        // What dead letters say about each other raises no alarm, and ends none. Only the database's word removes one.
        this.replays = attempts(
                processOnce,
                new Progress(settings.failurePolicy().alarmAfter(), new ConsumerListener() {}),
                window,
                null);
        this.settling = new Settling(settings, deadLetters, lifecycle.stopRequested());
        this.lanes = new Lanes(settings.lanes());
        this.pipeline = new ConsumerPipeline<>(settings, identify, attempts, settling, lifecycle, lanes);
    }

    private Attempts<T> attempts(
            ProcessOnce<T> processOnce, Progress progress, RedeliveryWindow window, @Nullable RecentKeys recentKeys) {
        return new Attempts<>(
                processOnce,
                probe::answers,
                settings,
                progress,
                startupCheck::snapshotIsolation,
                lifecycle,
                claims.areKept(),
                claims.followSource(),
                claims.admitByHand(),
                window,
                recentKeys);
    }

    /**
     * Starts to describe a consumer.
     *
     * @param consumer its name: part of every claim, so it must stay the same over releases, and be unique among the consumers
     *     of a claim table. At most 100 characters.
     */
    public static <T> ConsumerBuilder<T> named(String consumer) {
        return new ConsumerBuilder<>(given("the consumer's name", consumer));
    }

    /** The consumer's name. */
    public String name() {
        return settings.consumer();
    }

    /**
     * Handles a flux of deliveries and settles each after its commit.
     *
     * <p>Before the first delivery is asked for, the set-up is checked. The flux of outcomes ends when the deliveries end, or
     * after {@link #stop()}. It fails with {@link InvalidSetupException} if the check does, and with the error of the
     * deliveries if they fail; never because of a message. Cancelling it rolls back what is under way; the broker delivers
     * that again.
     *
     * <p>A transaction in the subscriber's Reactor context is not joined, and an {@code onErrorContinue} after it does not reach
     * into it.
     */
    @Override
    public Flux<Outcome> apply(Flux<Delivery<T>> deliveries) {
        return Flux.defer(() -> {
            HealthWatch.OfFlux watch = health.ofFlux(deliveries);
            GuardedListener listener = settings.listener().keeping(watch);
            return outcomes(deliveries, listener, watch).doFinally(end -> watch.ended(end == SignalType.ON_COMPLETE));
        });
    }

    private Flux<Outcome> outcomes(Flux<Delivery<T>> deliveries, GuardedListener listener, HealthWatch.OfFlux watch) {
        return Flux.defer(() -> {
                    if (!lifecycle.begin()) {
                        return Flux.<Outcome>empty();
                    }
                    listener.onStart();
                    return startupCheck
                            .passed()
                            .takeUntilOther(lifecycle.stopRequested())
                            .thenMany(Flux.defer(
                                    () -> lifecycle.isStopAsked() ? Flux.<Outcome>empty() : begun(deliveries, watch)))
                            .doOnError(error -> tellEnd(listener, error))
                            .doFinally(end -> lifecycle.ended());
                })
                .contextWrite(intake(listener)::into)
                .contextWrite(CallersTransaction::without)
                .onErrorStop();
    }

    /** A source says that it opens as it is subscribed to, before the start is over. */
    private Flux<Outcome> begun(Flux<Delivery<T>> deliveries, HealthWatch.OfFlux watch) {
        return pipeline.outcomes(deliveries).doOnSubscribe(subscription -> watch.checked());
    }

    private static void tellEnd(GuardedListener listener, Throwable error) {
        if (error instanceof InvalidSetupException refused) {
            listener.onRefused(refused);
        } else {
            listener.onFailed(error);
        }
    }

    private Intake intake(GuardedListener listener) {
        return new Intake(
                settings.consumer(),
                identify.takesIdsFromSource(),
                settings.lanes(),
                settings.maxInFlight(),
                settings.failurePolicy().conflictTimeout().plus(settings.timeLimit()),
                deadLetters != null,
                claims,
                claimsKept,
                connectionsOfSource,
                startupCheck.passed().then(Mono.defer(probe::untilAnswers)),
                lifecycle.stopRequested(),
                lifecycle::closing,
                listener);
    }

    /**
     * Handles one message whose caller waits for the answer, such as a webhook.
     *
     * <p>An applied message or duplicate is acknowledged. A message that fails is not settled: the caller gets
     * {@link Outcome.Failed}, with kind {@link FailureKind#INFRASTRUCTURE} where a later call may well succeed, and
     * {@link FailureKind#BROKEN_SETUP} where it will not before somebody has mended the set-up. If a COMMIT was not answered within the
     * budget, the failure says so; calling again with the same id is then the way to know.
     *
     * @return the outcome. Errors: {@link IllegalStateException} inside a caller's transaction, because the answer would
     *     precede the commit, where claims {@linkplain Claims#followSource follow a source}, and after {@link #stop()};
     *     {@link InvalidSetupException} if the set-up is wrong.
     */
    public Mono<Outcome> process(Delivery<T> delivery) {
        return CallersTransaction.isActive()
                .flatMap(inTransaction -> {
                    if (claims.followSource()) {
                        return Mono.error(comesFromNoSource("process"));
                    }
                    if (inTransaction) {
                        return Mono.error(
                                new IllegalStateException("process must not run inside a transaction: its answer would"
                                        + " precede the commit. Use claimInTransaction there."));
                    }
                    return whileRunning(handle(delivery, attempts::within)
                            .doOnNext(this::noteForHealth)
                            .flatMap(outcome -> outcome.isDone()
                                    ? settling.settle(List.of(
                                                    new Answer(delivery, outcome.settlement(), delivery::isCurrent)))
                                            .thenReturn(outcome)
                                    : Mono.just(outcome)));
                })
                .onErrorStop();
    }

    private <R> Mono<R> whileRunning(Mono<R> handling) {
        return Mono.defer(() -> lifecycle.begin()
                ? handling.takeUntilOther(lifecycle.cutOff())
                        .switchIfEmpty(Mono.error(() -> new IllegalStateException(
                                "the consumer " + name() + " was stopped before the message was handled")))
                        .doOnError(InvalidSetupException.class, calls::onRefused)
                        .doFinally(end -> lifecycle.ended())
                : Mono.error(hasBeenStopped()));
    }

    /** Attempts at a message, within a time. */
    @FunctionalInterface
    private interface AttemptsWithin<T> {
        Mono<Outcome> apply(Duration length, Message<T> message, Observed observed);
    }

    private Mono<Outcome> handle(Delivery<T> delivery, AttemptsWithin<T> attemptsWithin) {
        return Mono.deferContextual(caller -> {
            long start = System.nanoTime();
            Message<T> message = identify.identify(delivery);
            Duration budget = settings.processBudget();
            Observed observed = Observed.begin(name(), settings.observers(), List.of(message), caller);
            return startupCheck
                    .passedWithin(budget)
                    .then(Mono.defer(() ->
                            attemptsWithin.apply(budget.minusNanos(System.nanoTime() - start), message, observed)))
                    .onErrorResume(PendingException.class, error -> Mono.just(attempts.notAttempted(message, error)))
                    .doOnNext(outcome -> {
                        settings.listener().onOutcome(delivery, outcome, Duration.ofNanos(System.nanoTime() - start));
                        observed.onOutcome(delivery, outcome);
                    })
                    .doFinally(end -> observed.ended());
        });
    }

    private void noteForHealth(Outcome outcome) {
        if (outcome instanceof Outcome.Failed failed) {
            health.ofCalls().failed(failed.failure());
        }
    }

    private IllegalStateException comesFromNoSource(String call) {
        return new IllegalStateException(
                ("the consumer %s keeps its claims in %s, where each message has its place in a source: %s would pass over those"
                                + " before it. Use it with a flux of deliveries")
                        .formatted(name(), claims, call));
    }

    private IllegalStateException hasBeenStopped() {
        return new IllegalStateException("the consumer " + name() + " has been stopped");
    }

    /**
     * Claims a message in the caller's own transaction on this consumer's {@link ConnectionFactory}, for callers who commit and
     * answer themselves. The consumer's effect does not run, and nothing is settled. It sets {@code lock_timeout} for the rest of
     * the transaction.
     *
     * @param messageId the message's id
     * @param time when the message came to be, where the consumer has {@link ConsumerBuilder#sentAt} or {@link ConsumerBuilder#bucketedBy}; the
     *     same as at any other delivery of it
     * @return true if the claim is fresh and the caller should do the work; false for a duplicate. Error:
     *     {@link IllegalStateException} without a transaction, because the claim would stand alone, where claims
     *     {@linkplain Claims#followSource follow a source} or {@linkplain Claims#areKept are not kept}, where a time is needed and not
     *     given, or given and not needed, and after {@link #stop()}; {@link PermanentFailure} for a message that is too old or yet to come. It is
     *     noted in the {@link ConsumerBuilder#admissionTable} only if the caller commits all the same.
     */
    public Mono<Boolean> claimInTransaction(String messageId, Instant time) {
        return callersClaim(messageId, given("time", time));
    }

    /** {@link #claimInTransaction(String, Instant)} where no time is needed, or it is in the id ({@link ConsumerBuilder#bucketedByKey}). */
    public Mono<Boolean> claimInTransaction(String messageId) {
        return callersClaim(messageId, null);
    }

    private Mono<Boolean> callersClaim(String messageId, @Nullable Instant time) {
        if (messageId == null) {
            throw new IllegalArgumentException("messageId must not be null");
        }
        return CallersTransaction.isActive()
                .flatMap(inTransaction -> {
                    if (claims.followSource()) {
                        return Mono.error(comesFromNoSource("claimInTransaction"));
                    }
                    if (!claims.areKept()) {
                        return Mono.error(new IllegalStateException("the consumer " + name()
                                + " keeps no claims: its effect decides by itself whether it happens"));
                    }
                    if (!inTransaction) {
                        return Mono.error(
                                new IllegalStateException(
                                        "claimInTransaction needs a transaction in the Reactor context"
                                                + " (TransactionalOperator or @Transactional): without one the claim would commit alone."));
                    }
                    if (lifecycle.isStopping()) {
                        return Mono.error(hasBeenStopped());
                    }
                    Claims.Claim claim = claimOf(messageId, time);
                    return ConnectionFactoryUtils.currentConnectionFactory(connections)
                            .switchIfEmpty(Mono.error(() -> new IllegalStateException(
                                    "the transaction is on another ConnectionFactory than the consumer's")))
                            .then(ConnectionFactoryUtils.getConnection(connections))
                            .flatMap(connection -> startupCheck
                                    .tableIsFit(connection)
                                    .doOnError(InvalidSetupException.class, calls::onRefused)
                                    .then(Mono.defer(
                                            () -> claims.claim(connection, List.of(claim), settings.lockTimeout()))))
                            .map(IdempotentConsumer::isFresh);
                })
                .onErrorStop();
    }

    private Claims.Claim claimOf(String messageId, @Nullable Instant time) {
        Instant inId = identify.claimTimeOf(messageId);
        boolean isNeeded = identify.findsSentAt() || (claims.haveBuckets() && inId == null);
        if (isNeeded != (time != null)) {
            throw new IllegalStateException(
                    "the consumer %s %s"
                            .formatted(
                                    name(),
                                    isNeeded
                                            ? "goes by the time of its messages: use claimInTransaction(messageId, time)"
                                            : "needs no time of a message, or finds it in the id: use claimInTransaction(messageId)"));
        }
        Instant sent = identify.findsSentAt() ? time : null;
        String tooOld = window.tooOld(sent);
        String refusal = tooOld == null || claims.admitByHand() ? window.yetToCome(sent) : tooOld;
        if (refusal != null) {
            throw new PermanentFailure(refusal);
        }
        return new Claims.Claim(
                MessageKey.of(name(), messageId),
                null,
                !claims.haveBuckets() ? null : inId == null ? time : inId,
                tooOld);
    }

    private static boolean isFresh(Claims.Claimed claimed) {
        claimed.refused().values().stream().findFirst().ifPresent(why -> {
            throw new PermanentFailure(why);
        });
        return !claimed.fresh().isEmpty();
    }

    /**
     * The dead letters of this consumer in its {@link ConsumerBuilder#deadLetterTable}. Replayed ones are handled by this consumer, in
     * this process, one after the other, in a transaction each and another that removes the row. Each may try as long as one of
     * {@link #process}, but a broken set-up is not waited for, and raises no alarm. One that fails again stays, with its new reason, and
     * the replay goes on.
     *
     * <p>Errors of a replay: the database's own, {@link java.util.concurrent.TimeoutException}, or {@link IllegalStateException} where
     * the database does not take a letter within that time, and after {@link #stop()}; {@link InvalidSetupException}.
     *
     * @param decoder as for the messages of the source
     * @throws IllegalStateException if this consumer keeps none in a table
     */
    public DeadLetters deadLetters(Decoder<? super byte[], ? extends T> decoder) {
        if (deadLetters == null) {
            throw new IllegalStateException(
                    "the consumer " + name()
                            + " keeps no dead letters in a table: use deadLetterTable(...), or look where its source keeps them");
        }
        return new StoredDeadLetters(
                deadLetters,
                letter -> handle(letter.map(decoder), replays::onceMoreWithin),
                this::whileRunning,
                Mono.defer(probe::answers));
    }

    /** Whether it can do its work now. It only looks at what is known: it asks neither database nor broker, and never blocks. */
    public Health health() {
        return health.health();
    }

    /** How much each lane has to do now. */
    public Lanes lanes() {
        return lanes;
    }

    /** {@link #stop(Duration)} with a limit of 30 seconds. */
    public Mono<Void> stop() {
        return stop(Duration.ofSeconds(30));
    }

    /**
     * Stops for good: takes no more deliveries, lets the transactions that are under way commit and be acknowledged, and gives
     * everything else back to the broker. The fluxes of outcomes then complete.
     *
     * @param limit after which what is still under way is cancelled and rolled back; it will be delivered again
     * @return completes when nothing runs any more
     */
    public Mono<Void> stop(Duration limit) {
        return lifecycle.stop(given("limit", limit)).doOnSubscribe(subscription -> health.stopped());
    }

    @Override
    public String toString() {
        return "IdempotentConsumer[" + name() + ", " + settings.lanes() + " lanes, claims in " + claims + "]";
    }
}
