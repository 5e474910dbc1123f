package io.onceflux;

import io.onceflux.EffectClients.Lent;
import io.onceflux.ThrownErrors.EffectErrorException;
import java.util.List;
import java.util.function.BiFunction;
import java.util.function.Consumer;
import java.util.function.Function;
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
     * @param undoing whether what an effect wrote can be undone, if it turns out that nothing happens; for one message only
     * @return the outcomes, in the order of the messages; {@link WroteInVainException} if that turned out, and cannot be undone
     */
    Mono<List<Outcome>> run(
            List<Message<T>> fresh, AttemptConnection connection, Consumer<Message<T>> culprit, boolean undoing);

    /**
     * One after the other, in the order of the messages.
     *
     * @param claimed whether the messages' keys are
     */
    static <T> EffectRunner<T> oneByOne(Effect<? super T> effect, boolean claimed) {
        return inTransaction((fresh, transaction, culprit, undoing) -> inOrder(
                fresh,
                culprit,
                message -> transaction
                        .run(message, scope(message, claimed), db -> effect.apply(payload(message), db))
                        .then(Mono.fromSupplier(() -> new Outcome.Applied(message.requireKey())))));
    }

    /**
     * One after the other, each with the outcome that its effect says. What a message has written is undone where it affected no row.
     *
     * @param meaning of no row, asked in the same transaction
     * @param claimed whether the messages' keys are
     */
    static <T> EffectRunner<T> conditional(
            ConditionalEffect<? super T> effect,
            BiFunction<? super T, DatabaseClient, ? extends Publisher<NoRows>> meaning,
            boolean claimed) {
        return inTransaction((fresh, transaction, culprit, undoing) -> inOrder(fresh, culprit, message -> {
            AttemptConnection connection = transaction.connection();
            int before = connection.statements();
            Mono<Long> rows = rowsOf(message, effect, transaction, claimed);
            Mono<Long> undone = undoing ? Undoing.whereNone(rows, connection) : rows;
            return undone.flatMap(affected -> {
                if (affected > 0) {
                    return Mono.just(new Outcome.Applied(message.requireKey()));
                }
                return !undoing && connection.mayHaveWrittenSince(before)
                        ? Mono.error(new WroteInVainException())
                        : meaningOf(message, meaning, transaction, claimed);
            });
        }));
    }

    private static <T> Mono<Long> rowsOf(
            Message<T> message, ConditionalEffect<? super T> effect, EffectsTransaction transaction, boolean claimed) {
        return transaction
                .<Number>run(message, scope(message, claimed), db -> effect.apply(payload(message), db))
                .map(Number::longValue)
                .reduce((first, second) -> {
                    throw new IllegalStateException("the conditional effect emitted several numbers: the statement that"
                            + " decides has one, and what depends on it goes into then(...)");
                })
                .switchIfEmpty(Mono.error(() -> new IllegalStateException(
                        "the conditional effect emitted no number: it returns how many rows were affected")));
    }

    private static <T> Mono<Outcome> meaningOf(
            Message<T> message,
            BiFunction<? super T, DatabaseClient, ? extends Publisher<NoRows>> meaning,
            EffectsTransaction transaction,
            boolean claimed) {
        return transaction
                .run(
                        message,
                        new MessagesInScope(List.of(message), claimed, MessagesInScope.BEHIND_THE_EFFECT),
                        db -> meaning.apply(payload(message), db))
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

    private static EffectScope scope(Message<?> message, boolean claimed) {
        return new MessagesInScope(List.of(message), claimed, 0);
    }

    private static <T> T payload(Message<T> message) {
        return message.delivery().payload();
    }

    /**
     * All at once.
     *
     * @param claimed whether the messages' keys are
     */
    static <T> EffectRunner<T> together(BatchEffect<T> effect, boolean claimed) {
        return inTransaction((fresh, transaction, culprit, undoing) -> transaction
                .run(
                        fresh.size() == 1 ? fresh.get(0) : null,
                        new MessagesInScope(fresh, claimed, 0),
                        db -> effect.apply(
                                fresh.stream().map(EffectRunner::payload).toList(), db))
                .then(Mono.fromSupplier(() -> fresh.stream()
                        .<Outcome>map(message -> new Outcome.Applied(message.requireKey()))
                        .toList())));
    }

    private static <T> EffectRunner<T> inTransaction(EffectsOfMessages<T> effects) {
        EffectClients clients = new EffectClients();
        return (fresh, connection, culprit, undoing) -> Mono.using(
                () -> clients.lend(connection),
                lent -> connection
                        .thrownErrors()
                        .watch(effects.run(fresh, new EffectsTransaction(connection, lent), culprit, undoing)),
                clients::giveBack);
    }

    /** What runs in one transaction. */
    @FunctionalInterface
    interface EffectsOfMessages<T> {
        Mono<List<Outcome>> run(
                List<Message<T>> fresh, EffectsTransaction transaction, Consumer<Message<T>> culprit, boolean undoing);
    }

    /** The transaction in which effects run. */
    record EffectsTransaction(AttemptConnection connection, Lent lent) {

        /**
         * Runs one effect, which is given a client of its own.
         *
         * @param message whose effect it is; null if it is that of several
         */
        <V> Flux<V> run(
                @Nullable Message<?> message,
                EffectScope scope,
                Function<DatabaseClient, ? extends @Nullable Publisher<? extends V>> effect) {
            return Flux.deferContextual(context -> {
                EffectConnection own = new EffectConnection(
                        connection, () -> message == null ? "a batch effect" : "the effect of " + message.key());
                DatabaseClient client = lent.to(own, scope);
                Flux<V> run = connection
                        .thrownErrors()
                        .<V, V>guard(Flux.defer(() -> publisherOf(effect, client)), () -> new Ending<>(own))
                        .onErrorMap(Error.class, EffectErrorException::new);
                return message == null ? run : Observed.one(message, context, run);
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

    /** No row was affected, but something else may have been written, which must not be committed. */
    final class WroteInVainException extends RuntimeException {
        WroteInVainException() {
            super(
                    "no row was affected, and what was written besides is rolled back: the message is tried once more, alone");
        }
    }
}
