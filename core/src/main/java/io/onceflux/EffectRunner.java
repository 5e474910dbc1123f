package io.onceflux;

import io.onceflux.EffectClients.Lent;
import io.onceflux.ThrownErrors.EffectErrorException;
import java.util.List;
import java.util.function.BiFunction;
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
     * @return the outcomes, in the order of the messages
     */
    Mono<List<Outcome>> run(List<Message<T>> fresh, AttemptConnection connection, Consumer<Message<T>> culprit);

    /** One after the other, in the order of the messages. */
    static <T> EffectRunner<T> oneByOne(Effect<? super T> effect) {
        return inTransaction((fresh, transaction, culprit) -> inOrder(
                fresh,
                culprit,
                message -> transaction
                        .run(nameOf(message), db -> effect.apply(payload(message), db))
                        .then(Mono.fromSupplier(() -> new Outcome.Applied(message.requireKey())))));
    }

    /**
     * One after the other, each with the outcome that its effect says.
     *
     * @param meaning of no row, asked in the same transaction
     * @param undone whether what a message has written is rolled back where it affected no row. In a batch that is only possible if it
     *     stands alone, which it is then made to
     */
    static <T> EffectRunner<T> conditional(
            ConditionalEffect<? super T> effect,
            BiFunction<? super T, DatabaseClient, ? extends Publisher<NoRows>> meaning,
            boolean undone) {
        return inTransaction((fresh, transaction, culprit) -> inOrder(fresh, culprit, message -> {
            int before = transaction.connection().statements();
            return transaction
                    .<Number>run(nameOf(message), db -> effect.apply(payload(message), db))
                    .map(Number::longValue)
                    .reduce((first, second) -> {
                        throw new IllegalStateException(
                                "the conditional effect emitted several numbers: the statement that"
                                        + " decides has one, and what depends on it goes into then(...)");
                    })
                    .switchIfEmpty(Mono.error(() -> new IllegalStateException(
                            "the conditional effect emitted no number: it returns how many rows were affected")))
                    .flatMap(rows -> {
                        if (rows > 0) {
                            return Mono.just(new Outcome.Applied(message.requireKey()));
                        }
                        boolean mayHaveWritten = transaction.connection().statements() - before > 1;
                        return undone && mayHaveWritten && fresh.size() > 1
                                ? Mono.error(new StandsAloneException())
                                : meaningOf(message, meaning, transaction);
                    });
        }));
    }

    private static <T> Mono<Outcome> meaningOf(
            Message<T> message,
            BiFunction<? super T, DatabaseClient, ? extends Publisher<NoRows>> meaning,
            EffectsTransaction transaction) {
        return transaction
                .run(nameOf(message), db -> meaning.apply(payload(message), db))
                .next()
                .switchIfEmpty(Mono.error(
                        () -> new IllegalStateException("it was not said what it means that no row was affected")))
                .map(said -> switch (said) {
                    case DUPLICATE -> new Outcome.Duplicate(message.requireKey());
                    case STALE -> new Outcome.Stale(message.requireKey());
                    case FAILED -> throw new PermanentFailure("the effect affected no row");
                    case AGAIN -> throw new AgainException();
                });
    }

    private static <T> Mono<List<Outcome>> inOrder(
            List<Message<T>> fresh, Consumer<Message<T>> culprit, Function<Message<T>, Mono<Outcome>> effect) {
        if (fresh.size() == 1) {
            return effect.apply(fresh.get(0)).map(List::of);
        }
        return Flux.fromIterable(fresh)
                .concatMap(message -> effect.apply(message).doOnError(error -> culprit.accept(message)))
                .collectList()
                .doOnNext(outcomes -> {
                    if (outcomes.size() != fresh.size()) {
                        throw new IllegalStateException("an effect ended without an outcome");
                    }
                });
    }

    private static Supplier<String> nameOf(Message<?> message) {
        return () -> "the effect of " + message.key();
    }

    private static <T> T payload(Message<T> message) {
        return message.delivery().payload();
    }

    /** All at once. */
    static <T> EffectRunner<T> together(BatchEffect<T> effect) {
        return inTransaction((fresh, transaction, culprit) -> transaction
                .run(
                        fresh.size() == 1 ? nameOf(fresh.get(0)) : () -> "a batch effect",
                        db -> effect.apply(
                                fresh.stream().map(EffectRunner::payload).toList(), db))
                .then(Mono.fromSupplier(() -> fresh.stream()
                        .<Outcome>map(message -> new Outcome.Applied(message.requireKey()))
                        .toList())));
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
        Mono<List<Outcome>> run(List<Message<T>> fresh, EffectsTransaction transaction, Consumer<Message<T>> culprit);
    }

    /** The transaction in which effects run. */
    record EffectsTransaction(AttemptConnection connection, Lent lent) {

        /** Runs one effect, which is given a client of its own. */
        <V> Flux<V> run(
                Supplier<String> name, Function<DatabaseClient, ? extends @Nullable Publisher<? extends V>> effect) {
            return Flux.defer(() -> {
                EffectConnection own = new EffectConnection(connection, name);
                return connection
                        .thrownErrors()
                        .<V, V>guard(Flux.defer(() -> publisherOf(effect, lent.to(own))), () -> new Ending<>(own))
                        .onErrorMap(Error.class, EffectErrorException::new);
            });
        }

        private static <V> Publisher<? extends V> publisherOf(
                Function<DatabaseClient, ? extends @Nullable Publisher<? extends V>> effect, DatabaseClient client) {
            Publisher<? extends V> publisher = effect.apply(client);
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

    /** The statement that decides saw something else than the look behind it. */
    final class AgainException extends RuntimeException {
        AgainException() {
            super("what the statement decided on has changed meanwhile");
        }
    }

    /** The effect affected no row after other statements, which cannot be rolled back without those of other messages. */
    final class StandsAloneException extends RuntimeException {
        StandsAloneException() {
            super(
                    "no row was affected, and what was written before is rolled back: the message is tried once more, alone");
        }
    }
}
