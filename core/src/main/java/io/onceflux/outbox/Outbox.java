package io.onceflux.outbox;

import io.onceflux.EffectScope;
import io.onceflux.MessageKey;
import io.onceflux.postgres.OutboxTable;
import io.onceflux.postgres.OutboxTable.NewRow;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;
import reactor.util.context.ContextView;

/**
 * What effects want to happen outside of the database: a mail, a call, a message. It is written down in the effect's transaction, and so
 * happens if and only if the effect does; a {@link Relay} sends it afterwards.
 *
 * <pre>{@code
 * Outbox outbox = Outbox.in(OutboxTable.outbox());
 *
 * IdempotentConsumer.<OrderCompleted>named("loyalty")
 *         .effect((order, db) -> credit(order, db)
 *                 .then(outbox.append(db, OutboxEntry.of("receipt", order.customerId(), json(order)))))
 * }</pre>
 *
 * <p>Each entry has an idempotency key, made of the consumer, the key of the message, and how many entries of that message were before
 * it: the same on every attempt, if the effect appends in the same order each time. Where no claims are kept, and a message's id may be that of
 * another, it is made of the entry itself: then an entry is not to say what differs from time to time. An entry that is there already is not
 * appended again.
 *
 * <p>Thread-safe.
 */
public final class Outbox {

    private static final Logger log = LoggerFactory.getLogger(Outbox.class);
    private static final int PAGE = 100;
    private static final int LONGEST_IDEMPOTENCY_KEY = 255;

    private final OutboxTable table;
    private final OutboxHeaders further;
    private final Sinks.Many<Boolean> appended;

    private Outbox(OutboxTable table, OutboxHeaders further, Sinks.Many<Boolean> appended) {
        this.table = table;
        this.further = further;
        this.appended = appended;
    }

    /** An outbox in a table of PostgreSQL, which {@link OutboxTable#createSql} or {@link OutboxTable#create} makes. */
    public static Outbox in(OutboxTable table) {
        return new Outbox(
                Objects.requireNonNull(table, "table"),
                (entry, context) -> Map.of(),
                Sinks.many().multicast().directBestEffort());
    }

    /**
     * This one, with further headers for each entry, such as where its trace goes on. An entry's own headers come first; the idempotency key does
     * not depend on further ones. Default: none.
     */
    public Outbox headers(OutboxHeaders ofEachEntry) {
        return new Outbox(table, Objects.requireNonNull(ofEachEntry, "ofEachEntry"), appended);
    }

    /**
     * Appends an entry for the message of an effect.
     *
     * @param db as the effect was given it
     * @return empty, once it is written in the effect's transaction. Errors: {@link IllegalArgumentException} for another client,
     *     {@link IllegalStateException} in an effect of several messages (use {@link #appendFor}; for the consumer that is a batch that fails, which it
     *     takes apart until each message is alone), or the database's own
     */
    public Mono<Void> append(DatabaseClient db, OutboxEntry entry) {
        return Mono.deferContextual(context -> {
            EffectScope scope = EffectScope.of(db);
            return append(db, List.of(row(scope, scope.key(), entry, context)));
        });
    }

    /** The same, in parts; {@link OutboxEntry} says what they are. */
    public Mono<Void> append(DatabaseClient db, String kind, String key, byte[] payload, Map<String, String> headers) {
        return Mono.defer(() -> append(db, new OutboxEntry(kind, key, payload, headers)));
    }

    /**
     * Appends an entry for one of the messages of an effect.
     *
     * @param message as the effect was given it: that object
     */
    public Mono<Void> appendFor(DatabaseClient db, Object message, OutboxEntry entry) {
        return Mono.deferContextual(context -> {
            EffectScope scope = EffectScope.of(db);
            return append(db, List.of(row(scope, scope.keyOf(message), entry, context)));
        });
    }

    /**
     * Appends an entry for each of the messages of an effect, with one statement.
     *
     * @param messages as the effect was given them
     * @param entry makes the entry of a message; null for none
     */
    public <T> Mono<Void> appendForEach(
            DatabaseClient db, Collection<T> messages, Function<? super T, @Nullable OutboxEntry> entry) {
        return Mono.deferContextual(context -> {
            EffectScope scope = EffectScope.of(db);
            List<NewRow> rows = new ArrayList<>(messages.size());
            for (T message : messages) {
                OutboxEntry made = entry.apply(message);
                if (made != null) {
                    rows.add(row(scope, scope.keyOf(Objects.requireNonNull(message)), made, context));
                }
            }
            return append(db, rows);
        });
    }

    /**
     * Appends an entry where there is no effect of OnceFlux, in a transaction of the caller's.
     *
     * @param inTransaction a connection with a transaction under way: without one the entry is sent whatever becomes of the rest
     * @param idempotencyKey the same each time it is appended; an entry that is there already is not appended again. 255 bytes in UTF-8 at most
     */
    public Mono<Void> appendAs(Connection inTransaction, String idempotencyKey, OutboxEntry entry) {
        return Mono.deferContextual(context -> {
                    OutboxEntry.requireText("the idempotency key", idempotencyKey, LONGEST_IDEMPOTENCY_KEY);
                    return table.append(inTransaction, List.of(row(idempotencyKey, entry, context)));
                })
                .doOnSuccess(done -> wake());
    }

    private NewRow row(EffectScope scope, MessageKey key, OutboxEntry entry, ContextView context) {
        String idempotencyKey = scope.keysAreClaimed()
                ? IdempotencyKeys.of(key, scope.next(key))
                : IdempotencyKeys.ofContent(key, entry);
        return row(idempotencyKey, entry, context);
    }

    private NewRow row(String idempotencyKey, OutboxEntry entry, ContextView context) {
        Map<String, String> more = further.of(entry, context);
        OutboxEntry whole = more.isEmpty() ? entry : entry.withFurther(more);
        return new NewRow(idempotencyKey, whole.kind(), whole.key(), whole.payload(), whole.headers());
    }

    private Mono<Void> append(DatabaseClient db, List<NewRow> rows) {
        return db.inConnection(connection -> table.append(connection, rows)).doOnSuccess(done -> wake());
    }

    /** Relays of this process: they look again for a while, as it is not committed yet. Told twice at once, one of them is enough. */
    private void wake() {
        log.trace("waking relays: {}", appended.tryEmitNext(Boolean.TRUE));
    }

    /** Emits when something was appended in this process. */
    Flux<Boolean> appended() {
        return appended.asFlux();
    }

    OutboxTable table() {
        return table;
    }

    /**
     * Tells the relays of other processes, if they {@linkplain Relay.Builder#listenOn listen}, that something was appended here: at most 20
     * times a second, by a NOTIFY of its own. It is not in the effects' transactions, because NOTIFY makes their COMMITs wait for each other.
     * Without it they find out when they look the next time.
     *
     * @param onError told why they could not be told; that is no loss
     * @return emits nothing, and does not end by itself
     */
    public Flux<Void> tellingRelays(
            ConnectionFactory connections, java.util.function.Consumer<? super Throwable> onError) {
        return appended()
                .sample(Duration.ofMillis(50))
                .onBackpressureLatest()
                .concatMap(
                        any -> Mono.usingWhen(connections.create(), table::tell, Connection::close)
                                .onErrorResume(error -> {
                                    onError.accept(error);
                                    return Mono.empty();
                                }),
                        1)
                .onErrorStop();
    }

    /** How many entries are to be sent, how many are parked, and how long the oldest has been waiting. */
    public Mono<OutboxTable.State> state(ConnectionFactory connections) {
        return Mono.usingWhen(connections.create(), table::state, Connection::close)
                .onErrorStop();
    }

    /** The entries that are parked, in the order in which they were appended, each with its reason. */
    public Flux<OutboxTable.ParkedRow> parked(ConnectionFactory connections) {
        return parkedAfter(connections, 0)
                .expand(page -> page.size() < PAGE
                        ? Mono.empty()
                        : parkedAfter(connections, page.get(page.size() - 1).number()))
                .concatMapIterable(page -> page)
                .onErrorStop();
    }

    private Mono<List<OutboxTable.ParkedRow>> parkedAfter(ConnectionFactory connections, long number) {
        return Mono.usingWhen(
                connections.create(), connection -> table.parked(connection, number, PAGE), Connection::close);
    }

    /**
     * Lets an entry that is parked be sent again, with the same idempotency key and as many attempts as a new one.
     *
     * @param number of {@link #parked}
     * @return whether it was parked
     */
    public Mono<Boolean> resume(ConnectionFactory connections, long number) {
        return Mono.usingWhen(connections.create(), connection -> table.resume(connection, number), Connection::close)
                .doOnNext(resumed -> wake())
                .onErrorStop();
    }

    @Override
    public String toString() {
        return "Outbox[" + table + "]";
    }
}
