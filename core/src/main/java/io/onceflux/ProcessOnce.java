package io.onceflux;

import io.onceflux.AttemptConnection.NoConnectionException;
import io.onceflux.Limits.LimitPassedException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
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

    ProcessOnce(Transactions transactions, Claims claims, EffectRunner<T> effects, Duration lockTimeout) {
        this.transactions = transactions;
        this.claims = claims;
        this.effects = effects;
        this.lockTimeout = lockTimeout;
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
        List<MessageKey> keys = messages.stream().map(Message::requireKey).toList();
        AtomicBoolean claimed = new AtomicBoolean();
        return transactions.inTransaction(connection -> Limits.within(
                        timeLimit,
                        claims.claim(connection, keys, lockTimeout)
                                .onErrorMap(this::claimFailed)
                                .flatMap(fresh -> {
                                    claimed.set(true);
                                    return effects(messages, fresh, connection, culprit);
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

    /** Claims that follow their source have a row for many messages: that somebody has it says nothing about this one. */
    private RuntimeException claimFailed(Throwable error) {
        boolean held = claims.followSource()
                && (error instanceof TimeLimitException || Classification.byTypeOrState(error) == FailureKind.CONFLICT);
        return held ? new ClaimHeldException(error) : new ClaimFailedException(error);
    }

    private Mono<List<Outcome>> effects(
            List<Message<T>> messages,
            Set<MessageKey> freshKeys,
            AttemptConnection connection,
            Consumer<Message<T>> culprit) {
        List<Message<T>> fresh = new ArrayList<>(messages.size());
        List<Outcome> outcomes = new ArrayList<>(messages.size());
        for (Message<T> message : messages) {
            MessageKey key = message.requireKey();
            if (freshKeys.contains(key)) {
                fresh.add(message);
                outcomes.add(new Outcome.Applied(key));
            } else {
                outcomes.add(new Outcome.Duplicate(key));
            }
        }
        return fresh.isEmpty()
                ? Mono.just(outcomes)
                : effects.run(fresh, connection, culprit).thenReturn(outcomes);
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
