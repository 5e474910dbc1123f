package io.onceflux;

import io.onceflux.ThrownErrors.EffectErrorException;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Runs the user's effect for messages whose claims are fresh, on the transaction's connection. */
interface EffectRunner<T> {

    /**
     * Runs the effect of every message.
     *
     * @param culprit is told the message whose effect failed, where that can be known
     */
    Mono<Void> run(List<Message<T>> fresh, AttemptConnection connection, Consumer<Message<T>> culprit);

    /** One after the other, in the order of the messages. */
    static <T> EffectRunner<T> oneByOne(Effect<? super T> effect) {
        return (fresh, connection, culprit) -> fresh.size() == 1
                ? one(effect, fresh.get(0), connection)
                : Flux.fromIterable(fresh)
                        .concatMap(message -> one(effect, message, connection)
                                .doOnError(error -> culprit.accept(message))
                                .thenReturn(message))
                        .count()
                        .filter(count -> count == fresh.size())
                        .switchIfEmpty(
                                Mono.error(() -> new IllegalStateException("an effect ended without an outcome")))
                        .then();
    }

    /** All at once. */
    static <T> EffectRunner<T> together(BatchEffect<T> effect) {
        return (fresh, connection, culprit) -> onConnection(
                connection,
                () -> fresh.size() == 1 ? "the effect of " + fresh.get(0).key() : "a batch effect",
                db -> effect.apply(
                        fresh.stream()
                                .map(message -> message.delivery().payload())
                                .toList(),
                        db));
    }

    private static <T> Mono<Void> one(Effect<? super T> effect, Message<T> message, AttemptConnection connection) {
        return onConnection(
                connection,
                () -> "the effect of " + message.key(),
                db -> effect.apply(message.delivery().payload(), db));
    }

    private static Mono<Void> onConnection(
            AttemptConnection connection,
            Supplier<String> name,
            Function<DatabaseClient, @Nullable Publisher<?>> effect) {
        return Mono.using(
                () -> new EffectConnection(connection, name),
                own -> connection
                        .thrownErrors()
                        .watch(Flux.defer(() -> publisherOf(effect, own)))
                        .onErrorMap(Error.class, EffectErrorException::new),
                EffectConnection::end);
    }

    private static Publisher<?> publisherOf(
            Function<DatabaseClient, @Nullable Publisher<?>> effect, EffectConnection own) {
        Publisher<?> publisher = effect.apply(own.client());
        return publisher != null ? publisher : Mono.error(new NullPointerException("the effect returned null"));
    }
}
