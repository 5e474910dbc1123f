package io.onceflux;

import io.onceflux.AttemptConnection.NoConnectionException;
import io.onceflux.AttemptConnection.UnknownCommitException;
import io.onceflux.Message.UnusableMessageException;
import io.onceflux.Retries.Verdict;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;
import reactor.util.retry.Retry;

/** Attempts at one message, each a transaction of its own, until it has an outcome or is let go. */
final class Attempts<T> {

    private final ProcessOnce<T> processOnce;
    private final Classification classification;
    private final Supplier<Mono<Boolean>> probe;
    private final Settings settings;
    private final Progress progress;
    private final BooleanSupplier snapshotIsolation;
    private final Mono<Void> stopRequested;

    Attempts(
            ProcessOnce<T> processOnce,
            Supplier<Mono<Boolean>> probe,
            Settings settings,
            Progress progress,
            BooleanSupplier snapshotIsolation,
            Mono<Void> stopRequested) {
        this.processOnce = processOnce;
        this.classification = new Classification(settings.failurePolicy().classifier(), Mono.defer(probe));
        this.probe = probe;
        this.settings = settings;
        this.progress = progress;
        this.snapshotIsolation = snapshotIsolation;
        this.stopRequested = stopRequested;
    }

    /**
     * Handles a message that arrived in a flux.
     *
     * @return its outcome; empty if it was let go, because its channel is lost or the consumer is stopping
     */
    Mono<Outcome> untilDone(Message<T> message) {
        return run(message, null);
    }

    /** Handles a message whose caller waits: no attempt starts or goes on after the budget, COMMIT excepted. */
    Mono<Outcome> within(Duration budget, Message<T> message) {
        return Mono.defer(() -> run(message, now() + budget.toMillis()));
    }

    /** The outcome of a message whose caller cannot wait until the database is there. */
    Outcome notAttempted(Message<T> message, Throwable error) {
        return failed(message, FailureKind.INFRASTRUCTURE, error, 0);
    }

    private Mono<Outcome> run(Message<T> message, @Nullable Long deadline) {
        return Mono.defer(() -> {
            Retries retries = new Retries(
                    message.key(),
                    deadline != null,
                    settings.failurePolicy(),
                    progress,
                    snapshotIsolation,
                    Attempts::now);
            return attempt(message, retries, deadline)
                    .retryWhen(Retry.from(failures ->
                            failures.concatMap(failure -> next(message, retries, deadline, failure.failure()))))
                    .onErrorResume(GivenUp.class, given -> Mono.just(given.outcome))
                    .onErrorResume(LetGo.class, let -> Mono.empty());
        });
    }

    private Mono<Outcome> attempt(Message<T> message, Retries retries, @Nullable Long deadline) {
        Throwable unusable = message.unusable();
        if (unusable != null) {
            return Mono.error(new UnusableMessageException(unusable));
        }
        return Mono.defer(() -> {
            retries.attemptStarted();
            return processOnce
                    .attempt(List.of(message), timeLimit(deadline))
                    .map(outcomes -> outcomes.get(0))
                    .doOnNext(this::committed);
        });
    }

    private void committed(Outcome outcome) {
        progress.committed();
        if (outcome instanceof Outcome.Applied) {
            progress.applied();
        }
    }

    /** Emits when the next attempt is to start; an error if there is none. */
    private Mono<Long> next(Message<T> message, Retries retries, @Nullable Long deadline, Throwable error) {
        if (Causes.has(error, UnknownCommitException.class)) {
            settings.listener().onUnknownCommit(message.delivery(), error);
        }
        return classification
                .kindOf(error)
                .flatMap(kind -> answersAfter(kind, error).map(answers -> retries.judge(kind, error, answers)))
                .flatMap(verdict -> carryOut(verdict, message, retries, deadline, error));
    }

    /** Without a connection for the message, one for a probe says nothing about it. */
    private Mono<Boolean> answersAfter(FailureKind kind, Throwable error) {
        return kind == FailureKind.INFRASTRUCTURE && !Causes.has(error, NoConnectionException.class)
                ? probe.get()
                : Mono.just(true);
    }

    private Mono<Long> carryOut(
            Verdict verdict, Message<T> message, Retries retries, @Nullable Long deadline, Throwable error) {
        if (!message.delivery().isCurrent()) {
            return Mono.error(new LetGo());
        }
        Duration pause = verdict.pause();
        if (pause == null || (deadline != null && now() + pause.toMillis() >= deadline)) {
            return Mono.error(new GivenUp(failed(message, verdict.kind(), error, retries.attempts())));
        }
        settings.listener().onRetry(message.delivery(), verdict.kind(), retries.attempts(), pause, error);
        if (verdict.held()) {
            progress.held(verdict.kind(), error);
        }
        return Mono.firstWithSignal(Mono.delay(pause), stopRequested.then(Mono.error(new LetGo())));
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
        Throwable told = judged != null ? judged : Causes.root(error);
        String message = Causes.messageOf(told);
        return judged != null && message != null
                ? message
                : told.getClass().getSimpleName() + (message == null ? "" : ": " + message);
    }

    private Duration timeLimit(@Nullable Long deadline) {
        return deadline == null
                ? settings.timeLimit()
                : Duration.ofMillis(Math.max(1, Math.min(settings.timeLimit().toMillis(), deadline - now())));
    }

    private static long now() {
        return TimeUnit.NANOSECONDS.toMillis(System.nanoTime());
    }

    /** Carries an outcome past the retry operator. */
    private static final class GivenUp extends RuntimeException {
        final transient Outcome outcome;

        GivenUp(Outcome outcome) {
            super("given up", null, false, false);
            this.outcome = outcome;
        }
    }

    /** The message is left to redelivery. */
    private static final class LetGo extends RuntimeException {
        LetGo() {
            super("let go", null, false, false);
        }
    }
}
