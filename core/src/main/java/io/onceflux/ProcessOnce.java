package io.onceflux;

import io.onceflux.ThrownErrors.EffectErrorException;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeoutException;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Claim and effect in one transaction: the claim first, the effect only for messages whose claim is fresh. */
final class ProcessOnce<T> {

    private final Transactions transactions;
    private final Claims claims;
    private final Effect<? super T> effect;
    private final Duration lockTimeout;

    ProcessOnce(Transactions transactions, Claims claims, Effect<? super T> effect, Duration lockTimeout) {
        this.transactions = transactions;
        this.claims = claims;
        this.effect = effect;
        this.lockTimeout = lockTimeout;
    }

    /**
     * One attempt at messages with different keys.
     *
     * @param timeLimit when the attempt is rolled back; it does not cut a COMMIT that was sent
     * @return the outcomes, in the order of the messages, after the commit
     */
    Mono<List<Outcome>> attempt(List<Message<T>> messages, Duration timeLimit) {
        List<MessageKey> keys = messages.stream().map(Message::requireKey).toList();
        return transactions.inTransaction(connection -> claims.claim(connection, keys, lockTimeout)
                .onErrorMap(ClaimFailedException::new)
                .flatMap(fresh -> effects(messages, fresh, connection))
                .timeout(timeLimit)
                .onErrorMap(TimeoutException.class, e -> new TimeLimitException(timeLimit)));
    }

    private Mono<List<Outcome>> effects(
            List<Message<T>> messages, Set<MessageKey> fresh, AttemptConnection connection) {
        return Flux.fromIterable(messages)
                .concatMap(message -> fresh.contains(message.requireKey())
                        ? effect(message, connection).thenReturn(applied(message))
                        : Mono.just(duplicate(message)))
                .collectList()
                .filter(outcomes -> outcomes.size() == messages.size())
                .switchIfEmpty(Mono.error(() -> new IllegalStateException("an effect ended without an outcome")));
    }

    private Mono<Void> effect(Message<T> message, AttemptConnection connection) {
        return Mono.using(
                () -> new EffectConnection(connection, message.requireKey()),
                own -> connection
                        .thrownErrors()
                        .watch(Flux.defer(() -> publisherOf(message, own)))
                        .onErrorMap(Error.class, EffectErrorException::new),
                EffectConnection::end);
    }

    private Publisher<?> publisherOf(Message<T> message, EffectConnection own) {
        Publisher<?> publisher = effect.apply(message.delivery().payload(), own.client());
        return publisher != null ? publisher : Mono.error(new NullPointerException("the effect returned null"));
    }

    private static Outcome applied(Message<?> message) {
        return new Outcome.Applied(message.requireKey());
    }

    private static Outcome duplicate(Message<?> message) {
        return new Outcome.Duplicate(message.requireKey());
    }

    /** The claim failed, so the effect had no part in it. */
    static final class ClaimFailedException extends RuntimeException {
        ClaimFailedException(Throwable cause) {
            super("the claim failed: " + Causes.messageOf(cause), cause);
        }
    }

    /** The attempt did not end within its limit and was rolled back. */
    static final class TimeLimitException extends RuntimeException {
        TimeLimitException(Duration limit) {
            super("no end within the time limit of " + limit.toMillis() + " ms");
        }
    }
}
