package io.onceflux;

import io.onceflux.AttemptConnection.NoConnectionException;
import io.onceflux.Claims.Claimed;
import io.onceflux.EffectRunner.WroteInVainException;
import io.onceflux.Limits.LimitPassedException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import reactor.core.publisher.Mono;

/** Claims and effects in one transaction: the claims first, an effect only where the claim is fresh. */
final class ProcessOnce<T> {

    private final Transactions transactions;
    private final Claims claims;
    private final EffectRunner<T> effects;
    private final Duration lockTimeout;
    private final RedeliveryWindow window;
    private final ConsumerListener listener;

    /** @param window beyond which a message is claimed only if it was admitted by hand, where claims know that; otherwise it does not come */
    ProcessOnce(
            Transactions transactions,
            Claims claims,
            EffectRunner<T> effects,
            Duration lockTimeout,
            RedeliveryWindow window,
            ConsumerListener listener) {
        this.transactions = transactions;
        this.claims = claims;
        this.effects = effects;
        this.lockTimeout = lockTimeout;
        this.window = window;
        this.listener = listener;
    }

    /**
     * One attempt at messages with different keys.
     *
     * @param timeLimit when the attempt is rolled back; it does not cut a COMMIT that was sent
     * @param mayCommit asked when COMMIT is about to be sent; if it says no, the attempt is rolled back
     * @param culprit is told the message whose effect failed, where that can be known
     * @return the outcomes, in the order of the messages, after the commit
     */
    Mono<List<Outcome>> attempt(
            List<Message<T>> messages, Duration timeLimit, BooleanSupplier mayCommit, Consumer<Message<T>> culprit) {
        Mono<List<Outcome>> attempt = attempt(messages, timeLimit, mayCommit, culprit, false);
        return messages.size() > 1
                ? attempt
                : attempt.onErrorResume(
                        WroteInVainException.class, inVain -> attempt(messages, timeLimit, mayCommit, culprit, true));
    }

    private Mono<List<Outcome>> attempt(
            List<Message<T>> messages,
            Duration timeLimit,
            BooleanSupplier mayCommit,
            Consumer<Message<T>> culprit,
            boolean undoing) {
        AtomicBoolean claimed = new AtomicBoolean();
        return transactions.inTransaction(connection -> Limits.within(
                        timeLimit,
                        claim(messages, connection)
                                .onErrorMap(this::claimFailed)
                                .flatMap(became -> {
                                    claimed.set(true);
                                    return effects(messages, became, connection, culprit, undoing);
                                }))
                .onErrorMap(LimitPassedException.class, e -> {
                    if (connection.waitsForBegin()) {
                        return new NoConnectionException(e);
                    }
                    TimeLimitException passed = new TimeLimitException(timeLimit);
                    return claimed.get() ? passed : claimFailed(passed);
                })
                .doOnNext(outcomes -> {
                    if (!mayCommit.getAsBoolean()) {
                        throw new TimeLimitException(timeLimit);
                    }
                }));
    }

    /** Whether a message that cannot be applied was done before, as what follows a source knows. Claims nothing. */
    Mono<Boolean> isDone(Message<T> message) {
        AtomicBoolean fresh = new AtomicBoolean();
        return transactions
                .inRolledBackTransaction(connection -> claims.claim(connection, List.of(message.claim()), lockTimeout)
                        .doOnNext(claimed -> fresh.set(claimed.fresh().contains(message.requireKey())))
                        .then())
                .onErrorMap(this::claimFailed)
                .then(Mono.fromSupplier(() -> !fresh.get()));
    }

    private Mono<Claimed> claim(List<Message<T>> messages, AttemptConnection connection) {
        List<Claims.Claim> asked = messages.stream()
                .map(message -> message.claim(claims.admitByHand() ? window.tooOld(message.sentAt()) : null))
                .toList();
        return Mono.defer(() -> {
            long start = System.nanoTime();
            return claims.claim(connection, asked, lockTimeout)
                    .doOnNext(claimed ->
                            listener.onClaimed(messages.size(), Duration.ofNanos(System.nanoTime() - start)));
        });
    }

    /** Claims that follow their source have a row for many messages: that somebody has it says nothing about this one. */
    private RuntimeException claimFailed(Throwable error) {
        boolean held = claims.followSource()
                && (error instanceof TimeLimitException || Classification.byTypeOrState(error) == FailureKind.CONFLICT);
        return held ? new ClaimHeldException(error) : new ClaimFailedException(error);
    }

    private Mono<List<Outcome>> effects(
            List<Message<T>> messages,
            Claimed claimed,
            AttemptConnection connection,
            Consumer<Message<T>> culprit,
            boolean undoing) {
        List<Message<T>> fresh = new ArrayList<>(messages.size());
        for (Message<T> message : messages) {
            if (claimed.fresh().contains(message.requireKey())) {
                fresh.add(message);
            }
        }
        if (fresh.isEmpty()) {
            return Mono.just(withOthers(messages, claimed, List.of()));
        }
        return effects.run(fresh, connection, culprit, undoing)
                .map(outcomes -> fresh.size() == messages.size() ? outcomes : withOthers(messages, claimed, outcomes));
    }

    private static <T> List<Outcome> withOthers(List<Message<T>> messages, Claimed claimed, List<Outcome> ofFresh) {
        Iterator<Outcome> next = ofFresh.iterator();
        List<Outcome> outcomes = new ArrayList<>(messages.size());
        for (Message<T> message : messages) {
            MessageKey key = message.requireKey();
            if (claimed.fresh().contains(key)) {
                outcomes.add(next.next());
            } else {
                outcomes.add(withoutEffect(key, claimed));
            }
        }
        return outcomes;
    }

    private static Outcome withoutEffect(MessageKey key, Claimed claimed) {
        String refused = claimed.refused().get(key);
        if (refused != null) {
            return Outcome.Failed.refused(key, refused);
        }
        return claimed.conflicting().contains(key) ? Outcome.Conflict.of(key) : new Outcome.Duplicate(key);
    }

    /** The claim failed, so the effect had no part in it. */
    static final class ClaimFailedException extends RuntimeException {
        ClaimFailedException(Throwable cause) {
            super("the claim failed: " + Causes.messageOf(cause), cause);
        }
    }

    /** Somebody else has what is claimed, and it is not this message's. */
    static final class ClaimHeldException extends RuntimeException {
        ClaimHeldException(Throwable cause) {
            super("the claim is held by another transaction: " + Causes.messageOf(cause), cause);
        }
    }

    /** The attempt did not end within its limit and was rolled back. */
    static final class TimeLimitException extends RuntimeException {
        TimeLimitException(Duration limit) {
            super("no end within the time limit of " + limit.toMillis() + " ms");
        }
    }
}
