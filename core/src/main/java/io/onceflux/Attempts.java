package io.onceflux;

import io.onceflux.AttemptConnection.UnknownCommitException;
import io.onceflux.Budget.BudgetOverException;
import io.onceflux.Judge.Verdict;
import io.onceflux.Message.UnusableMessageException;
import io.onceflux.Worklist.Part;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Attempts at messages, each a transaction, until every message has an outcome or is let go. */
final class Attempts<T> {

    private final ProcessOnce<T> processOnce;
    private final Classification classification;
    private final Supplier<Mono<Boolean>> probe;
    private final Settings settings;
    private final Progress progress;
    private final BooleanSupplier snapshotIsolation;
    private final Lifecycle lifecycle;
    private final boolean claimsAreKept;
    private final boolean claimsFollowSource;
    private final boolean admitByHand;
    private final RedeliveryWindow window;
    private final @Nullable RecentKeys recentKeys;
    private final Deadlocks deadlocks;

    /**
     * @param claimsAreKept whether messages of a batch with the same key are copies, which share what becomes of the first; otherwise each
     *     effect runs, and decides by itself
     * @param claimsFollowSource whether a claim can tell of a message that was given up, too
     * @param admitByHand whether claims decide about a message that is too old
     * @param window beyond which a message is not tried otherwise
     */
    Attempts(
            ProcessOnce<T> processOnce,
            Supplier<Mono<Boolean>> probe,
            Settings settings,
            Progress progress,
            BooleanSupplier snapshotIsolation,
            Lifecycle lifecycle,
            boolean claimsAreKept,
            boolean claimsFollowSource,
            boolean admitByHand,
            RedeliveryWindow window,
            @Nullable RecentKeys recentKeys) {
        this.processOnce = processOnce;
        this.classification = new Classification(settings.failurePolicy().classifier(), Mono.defer(probe));
        this.probe = probe;
        this.settings = settings;
        this.progress = progress;
        this.snapshotIsolation = snapshotIsolation;
        this.lifecycle = lifecycle;
        this.claimsAreKept = claimsAreKept;
        this.claimsFollowSource = claimsFollowSource;
        this.admitByHand = admitByHand;
        this.window = window;
        this.recentKeys = recentKeys;
        this.deadlocks = new Deadlocks(settings);
    }

    /**
     * What has become of a message.
     *
     * @param outcome null if it was let go, because its channel is lost or the consumer is stopping
     */
    record Handled<T>(Message<T> message, @Nullable Outcome outcome) {}

    /**
     * A worklist for messages that arrived in a flux. Those with an ordering key are sorted by it, without changing the order of
     * those that have the same: then two transactions that touch the same rows meet them in the same order.
     */
    Worklist<T> worklist(List<Message<T>> messages, Observed observed) {
        List<Message<T>> sorted = messages;
        if (messages.size() > 1 && messages.stream().anyMatch(Message::ordered)) {
            sorted = new ArrayList<>(messages);
            sorted.sort(Comparator.comparingInt(Message::order));
        }
        return new Worklist<>(sorted, claimsAreKept, observed, together -> judge(together, false));
    }

    private Judge judge(List<Message<T>> messages, boolean callerWaits) {
        return messages.size() > 1
                ? new BatchRetries(settings.failurePolicy())
                : new Retries(
                        messages.get(0).key(),
                        callerWaits,
                        settings.failurePolicy(),
                        progress,
                        snapshotIsolation,
                        Attempts::now);
    }

    /**
     * Works through the list, a step for each element that is asked for. A step is one transaction, or a pause; its result is what
     * has got its outcome by it.
     */
    Flux<Mono<List<Handled<T>>>> steps(Worklist<T> work) {
        return Flux.generate(sink -> {
            if (work.isEmpty()) {
                sink.complete();
            } else {
                sink.next(step(work, null));
            }
        });
    }

    /** Handles a message whose caller waits: no attempt starts or goes on after the budget, COMMIT excepted. */
    Mono<Outcome> within(Duration length, Message<T> message, Observed observed) {
        return within(length, message, observed, alone -> judge(alone, true));
    }

    /** The same for a dead letter. */
    Mono<Outcome> onceMoreWithin(Duration length, Message<T> message, Observed observed) {
        return within(length, message, observed, alone -> new OnceMore(judge(alone, true)));
    }

    private Mono<Outcome> within(
            Duration length, Message<T> message, Observed observed, Function<List<Message<T>>, Judge> judges) {
        return Mono.defer(() -> {
            Budget budget = new Budget(length);
            Worklist<T> work = new Worklist<>(List.of(message), claimsAreKept, observed, judges);
            Mono<Outcome> outcome = Mono.defer(() -> step(work, budget))
                    .repeat(() -> !work.isEmpty())
                    .concatMapIterable(handled -> handled)
                    .mapNotNull(Handled::outcome)
                    .collectList()
                    .flatMap(outcomes -> Mono.justOrEmpty(outcomes.stream().findFirst()))
                    .doFinally(end -> close(work));
            return Mono.firstWithSignal(outcome, budget.over())
                    .onErrorResume(BudgetOverException.class, error -> Mono.just(notAttempted(message, error)));
        });
    }

    /** The outcome of a message whose caller cannot wait until the database is there. */
    Outcome notAttempted(Message<T> message, Throwable error) {
        return failed(message, FailureKind.INFRASTRUCTURE, error, 0);
    }

    private Mono<List<Handled<T>>> step(Worklist<T> work, @Nullable Budget budget) {
        return Mono.defer(() -> {
            long now = now();
            Part<T> part = work.ready(now);
            if (part == null ? lifecycle.isStopAsked() : budget == null && lifecycle.isStopping()) {
                return Mono.just(letGo(work.close()));
            }
            if (part == null) {
                Duration pause = Duration.ofMillis(Math.max(1, work.readyAt(now) - now));
                return Mono.firstWithSignal(Mono.delay(pause).then(), lifecycle.stopRequested())
                        .thenReturn(List.of());
            }
            return part.messages().stream().allMatch(Message::isCurrent)
                    ? attempt(work, part, budget)
                    : Mono.fromSupplier(() -> withoutLost(work, part));
        });
    }

    /** Those whose channel is lost are not started: they are delivered again. */
    private List<Handled<T>> withoutLost(Worklist<T> work, Part<T> part) {
        return letGo(work.dropLost(part));
    }

    private List<Handled<T>> letGo(List<Message<T>> messages) {
        progress.released(messages);
        return messages.stream().map(message -> new Handled<>(message, null)).toList();
    }

    /** Ends the list: what has no outcome yet will have none, and is not held. */
    void close(Worklist<T> work) {
        progress.released(work.close());
    }

    private Mono<List<Handled<T>>> attempt(Worklist<T> work, Part<T> before, @Nullable Budget budget) {
        Message<T> first = before.messages().get(0);
        Throwable unusable = first.unusable();
        if (unusable != null) {
            return unusable(work, before, first, budget, unusable);
        }
        List<Refused<T>> refused = refused(before);
        if (!refused.isEmpty()) {
            return Mono.fromSupplier(() -> tooOld(work, before, refused));
        }
        List<Message<T>> known = known(before);
        if (!known.isEmpty()) {
            return Mono.fromSupplier(() -> {
                known.forEach(message -> settings.listener().onRecentKey(message.delivery()));
                return duplicates(work, before, known);
            });
        }
        Part<T> part = before.attempted();
        AtomicReference<Message<T>> culprit = new AtomicReference<>();
        if (budget != null) {
            budget.attemptStarts();
        }
        return work.observed()
                .around(processOnce.attempt(
                        part.messages(),
                        timeLimit(budget),
                        budget == null ? () -> true : budget::commits,
                        culprit::set))
                .map(outcomes -> committed(work, part, withAttempts(outcomes, part.attempts())))
                .onErrorResume(error -> afterFailure(work, part, culprit.get(), budget, error));
    }

    /** One that comes again, and was given up before, is a duplicate where the source's order says so. */
    private Mono<List<Handled<T>>> unusable(
            Worklist<T> work, Part<T> part, Message<T> message, @Nullable Budget budget, Throwable why) {
        Mono<Boolean> isDone =
                claimsFollowSource && message.key() != null ? processOnce.isDone(message) : Mono.just(false);
        return isDone.map(done -> done
                        ? Mono.fromSupplier(() -> duplicates(work, part, List.of(message)))
                        : afterFailure(work, part, null, budget, new UnusableMessageException(why)))
                .onErrorResume(error -> Mono.just(afterFailure(work, part, null, budget, error)))
                .flatMap(handled -> handled);
    }

    private record Refused<T>(Message<T> message, String why) {}

    /** Those that must not be tried, because nobody knows any more whether they were applied. */
    private List<Refused<T>> refused(Part<T> part) {
        List<Refused<T>> refused = new ArrayList<>();
        for (Message<T> message : part.messages()) {
            String tooOld = admitByHand ? null : window.tooOld(message.sentAt());
            String why = tooOld == null ? window.yetToCome(message.sentAt()) : tooOld;
            if (why != null) {
                refused.add(new Refused<>(message, why));
            }
        }
        return refused;
    }

    private List<Handled<T>> tooOld(Worklist<T> work, Part<T> part, List<Refused<T>> refused) {
        List<Message<T>> messages = refused.stream().map(Refused::message).toList();
        work.take(part, messages);
        progress.released(messages);
        refused.forEach(one -> progress.tooOld(one.why()));
        return withCopies(
                work,
                messages,
                refused.stream()
                        .map(one -> failed(
                                one.message(), FailureKind.PERMANENT, new PermanentFailure(one.why()), part.attempts()))
                        .toList());
    }

    /** Those that need not be tried, because this process has seen them committed. */
    private List<Message<T>> known(Part<T> part) {
        RecentKeys recent = recentKeys;
        return recent == null || part.attempts() > 0
                ? List.of()
                : part.messages().stream().filter(recent::knows).toList();
    }

    private List<Handled<T>> duplicates(Worklist<T> work, Part<T> part, List<Message<T>> known) {
        work.take(part, known);
        List<Outcome> outcomes = known.stream()
                .<Outcome>map(message -> new Outcome.Duplicate(message.requireKey()))
                .toList();
        return withCopies(work, known, outcomes);
    }

    private List<Handled<T>> committed(Worklist<T> work, Part<T> part, List<Outcome> outcomes) {
        boolean applied = outcomes.stream().anyMatch(Outcome.Applied.class::isInstance);
        if (applied || claimsAreKept) { // Otherwise nothing was written, and that says nothing about the database.
            progress.committed();
        }
        if (applied) {
            progress.applied();
        }
        for (Outcome outcome : outcomes) {
            if (outcome instanceof Outcome.Failed refused) {
                progress.tooOld(refused.failure().reason());
            }
        }
        if (recentKeys != null) {
            for (int i = 0; i < outcomes.size(); i++) {
                if (outcomes.get(i).isDone()) {
                    recentKeys.remember(part.messages().get(i));
                }
            }
        }
        return finish(work, part, outcomes);
    }

    private static List<Outcome> withAttempts(List<Outcome> outcomes, int attempts) {
        return attempts == 1 || outcomes.stream().allMatch(Outcome::isDone)
                ? outcomes
                : outcomes.stream()
                        .map(outcome -> withAttempts(outcome, attempts))
                        .toList();
    }

    private static Outcome withAttempts(Outcome outcome, int attempts) {
        if (outcome instanceof Outcome.Conflict conflict) {
            return conflict.after(attempts);
        }
        return outcome instanceof Outcome.Failed failed ? failed.after(attempts) : outcome;
    }

    private List<Handled<T>> finish(Worklist<T> work, Part<T> part, List<Outcome> outcomes) {
        work.finish(part);
        progress.released(part.messages());
        return withCopies(work, part.messages(), outcomes);
    }

    /** A failure is that of one body: what has another one may well be applied. */
    private static <T> List<Handled<T>> withCopies(
            Worklist<T> work, List<Message<T>> messages, List<Outcome> outcomes) {
        List<Handled<T>> handled = new ArrayList<>(outcomes.size());
        for (int i = 0; i < outcomes.size(); i++) {
            Message<T> message = messages.get(i);
            Outcome outcome = outcomes.get(i);
            handled.add(new Handled<>(message, outcome));
            for (Message<T> copy : work.copiesOf(message)) {
                if (outcome instanceof Outcome.Failed && copy.hasOtherBodyThan(message)) {
                    work.attemptApart(copy);
                } else {
                    handled.add(new Handled<>(copy, ofCopy(outcome)));
                }
            }
        }
        return handled;
    }

    /** A copy within a batch shares the outcome of the first, but its effect is not applied again. */
    private static Outcome ofCopy(Outcome outcome) {
        return outcome instanceof Outcome.Applied applied ? new Outcome.Duplicate(applied.key()) : outcome;
    }

    private Mono<List<Handled<T>>> afterFailure(
            Worklist<T> work, Part<T> part, @Nullable Message<T> culprit, @Nullable Budget budget, Throwable error) {
        if (Causes.has(error, UnknownCommitException.class)) {
            settings.listener().onUnknownCommit(part.messages().get(0).delivery(), error);
        }
        return classification
                .kindOf(error)
                .flatMap(kind ->
                        answersAfter(kind, error).map(answers -> part.judge().judge(kind, error, answers)))
                .map(verdict -> carryOut(work, part, culprit, budget, verdict, error));
    }

    /** Without a connection for the message, one for a probe says nothing about it. */
    private Mono<Boolean> answersAfter(FailureKind kind, Throwable error) {
        return kind == FailureKind.INFRASTRUCTURE && !NothingRan.isSaidBy(error) ? probe.get() : Mono.just(true);
    }

    private List<Handled<T>> carryOut(
            Worklist<T> work,
            Part<T> part,
            @Nullable Message<T> culprit,
            @Nullable Budget budget,
            Verdict verdict,
            Throwable error) {
        long next = now() + verdict.pause().toMillis();
        if (part.messages().stream().anyMatch(message -> !message.isCurrent())) {
            return withoutLost(work, part);
        }
        if (verdict.next() == Verdict.Next.GIVE_UP || (budget != null && budget.isOverAfter(verdict.pause()))) {
            return finish(work, part, List.of(failed(part.messages().get(0), verdict.kind(), error, part.attempts())));
        }
        deadlocks.noted(part.messages(), error);
        for (Message<T> message : part.messages()) {
            settings.listener().onRetry(message.delivery(), verdict.kind(), part.attempts(), verdict.pause(), error);
            work.observed().onRetry(message.delivery(), verdict.kind(), error);
        }
        if (verdict.next() == Verdict.Next.SPLIT) {
            progress.released(part.messages());
            work.split(part, culprit);
            return List.of();
        }
        if (verdict.next() == Verdict.Next.HOLD) {
            progress.held(part.messages(), verdict.kind(), error);
        }
        if (!work.again(part.waitingUntil(next)) || verdict.next() != Verdict.Next.HOLD) {
            progress.released(part.messages());
        }
        return List.of();
    }

    private Outcome failed(Message<T> message, FailureKind kind, Throwable error, int attempts) {
        return new Outcome.Failed(
                settings.consumer(),
                new Failure(
                        kind,
                        message.key(),
                        reasonOf(error),
                        SqlStates.stateOf(error),
                        attempts,
                        Clock.systemUTC().instant(),
                        error));
    }

    private static String reasonOf(Throwable error) {
        PermanentFailure judged = Causes.find(error, PermanentFailure.class);
        if (judged == null && SqlStates.isRolledBackForASwallowedError(error)) {
            return "the effect has swallowed the error of a statement, after which PostgreSQL commits nothing: let the error through,"
                    + " or go back to a savepoint";
        }
        Throwable told = judged != null ? judged : Causes.root(error);
        String message = Causes.messageOf(told);
        return judged != null && message != null
                ? message
                : told.getClass().getSimpleName() + (message == null ? "" : ": " + message);
    }

    private Duration timeLimit(@Nullable Budget budget) {
        return budget == null ? settings.timeLimit() : budget.within(settings.timeLimit());
    }

    private static long now() {
        return TimeUnit.NANOSECONDS.toMillis(System.nanoTime());
    }
}
