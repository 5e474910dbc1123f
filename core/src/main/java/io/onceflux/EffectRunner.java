package io.onceflux;

import io.onceflux.EffectClients.Lent;
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
        return inTransaction((fresh, transaction, culprit) -> fresh.size() == 1
                ? one(effect, fresh.get(0), transaction)
                : Flux.fromIterable(fresh)
                        .concatMap(message -> one(effect, message, transaction)
                                .doOnError(error -> culprit.accept(message))
                                .thenReturn(message))
                        .count()
                        .filter(count -> count == fresh.size())
                        .switchIfEmpty(
                                Mono.error(() -> new IllegalStateException("an effect ended without an outcome")))
                        .then());
    }

    private static <T> Mono<Void> one(Effect<? super T> effect, Message<T> message, EffectsTransaction transaction) {
        return transaction.run(
                () -> "the effect of " + message.key(),
                db -> effect.apply(message.delivery().payload(), db));
    }

    /** All at once. */
    static <T> EffectRunner<T> together(BatchEffect<T> effect) {
        return inTransaction((fresh, transaction, culprit) -> transaction.run(
                () -> fresh.size() == 1 ? "the effect of " + fresh.get(0).key() : "a batch effect",
                db -> effect.apply(
                        fresh.stream()
                                .map(message -> message.delivery().payload())
                                .toList(),
                        db)));
    }

    private static <T> EffectRunner<T> inTransaction(EffectsOfMessages<T> effects) {
        EffectClients clients = new EffectClients();
        return (fresh, connection, culprit) -> Mono.using(
                () -> clients.lend(connection),
                lent -> connection
                        .thrownErrors()
                        .watch(effects.run(fresh, new EffectsTransaction(connection, lent), culprit)),
                clients::giveBack);
    }

    /** What runs in one transaction. */
    @FunctionalInterface
    interface EffectsOfMessages<T> {
        Mono<Void> run(List<Message<T>> fresh, EffectsTransaction transaction, Consumer<Message<T>> culprit);
    }

    /** The transaction in which effects run. */
    record EffectsTransaction(AttemptConnection connection, Lent lent) {

        /** Runs one effect, which is given a client of its own. */
        Mono<Void> run(Supplier<String> name, Function<DatabaseClient, @Nullable Publisher<?>> effect) {
            return Mono.defer(() -> {
                EffectConnection own = new EffectConnection(connection, name);
                return connection
                        .thrownErrors()
                        .guard(Flux.defer(() -> publisherOf(effect, lent.to(own))), () -> new Ending<>(own))
                        .onErrorMap(Error.class, EffectErrorException::new)
                        .then();
            });
        }

        private static Publisher<?> publisherOf(
                Function<DatabaseClient, @Nullable Publisher<?>> effect, DatabaseClient client) {
            Publisher<?> publisher = effect.apply(client);
            return publisher != null ? publisher : Mono.error(new NullPointerException("the effect returned null"));
        }
    }

    /** Takes an effect's connection away from it when it ends, however it does. */
    record Ending<V>(EffectConnection own) implements ThrownErrors.Observer<V, V> {

        @Override
        public V onNext(V value) {
            return value;
        }

        @Override
        public void onEnd() {
            own.end();
        }

        @Override
        public void onCancel() {
            own.end();
        }
    }
}
