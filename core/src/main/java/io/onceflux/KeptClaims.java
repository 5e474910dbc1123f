package io.onceflux;

import static io.onceflux.Require.given;
import static io.onceflux.Require.positive;
import static io.onceflux.Require.writtenDown;

import io.onceflux.postgres.ClaimRows;
import io.onceflux.postgres.ClaimTable;
import io.onceflux.postgres.UnfitTableException;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.springframework.transaction.annotation.Isolation;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * A hand on the claims of a table: what is there, since when, and forgetting one on purpose.
 *
 * <p>It joins no transaction of its caller, and takes a connection for each page that it reads, not for as long as somebody looks at it.
 * Errors: {@link InvalidSetupException} without a table or a right that is needed, or the database's own.
 *
 * <p>To look, the role needs SELECT on the claims; to {@linkplain #forget}, DELETE too, and INSERT on the table of what was forgotten; to
 * follow what is {@linkplain #forgotten}, SELECT on that.
 */
public final class KeptClaims {

    private static final int PAGE = 1_000;
    private static final Duration CONTROL_LIMIT = Duration.ofSeconds(10);

    /** What is committed late is seen all the same, if it was under way for less than this. */
    private static final Duration UNDER_WAY = Duration.ofMinutes(1);

    private final ClaimRows rows;
    private final ConnectionFactory connections;
    private final Transactions transactions;

    private KeptClaims(ClaimTable table, ConnectionFactory connections) {
        this.rows = new ClaimRows(table);
        this.connections = connections;
        this.transactions = new Transactions(connections, Isolation.READ_COMMITTED, CONTROL_LIMIT);
    }

    /** The claims of a table. */
    public static KeptClaims in(ClaimTable table, ConnectionFactory connections) {
        return new KeptClaims(given("table", table), given("connections", connections));
    }

    /** Claims, in the order of consumer and id, read in pages, of which one is read ahead. */
    public Flux<KeptClaim> find(ClaimQuery which) {
        ClaimRows.Filter filter = given("which", which).filter();
        return page(filter, null)
                .expand(page -> page.size() < PAGE ? Flux.empty() : page(filter, page.get(page.size() - 1)), 1)
                .concatMapIterable(page -> page, 1)
                .map(KeptClaims::claim)
                .onErrorStop();
    }

    /** Read whether somebody asks for it yet or not: the connection is not to wait for that. */
    private Flux<List<ClaimRows.Claim>> page(ClaimRows.Filter filter, ClaimRows.@Nullable Claim after) {
        return onConnection(connection -> rows.page(connection, filter, after, PAGE))
                .flux()
                .onBackpressureBuffer(1);
    }

    /**
     * The claim of a key: when it was claimed; empty if it is not.
     *
     * @param key {@link MessageKey#of} for an id as the producer gave it; {@link MessageKey#MessageKey} for one as it is kept, of a
     *     {@link KeptClaim}
     */
    public Mono<KeptClaim> find(MessageKey key) {
        given("key", key);
        return onConnection(connection -> rows.find(connection, key.consumer(), key.id()))
                .map(KeptClaims::claim)
                .onErrorStop();
    }

    /**
     * Forgets a claim, so that its message, when it comes again, is applied again. Who has done so, and why, is written to the table of
     * what was forgotten ({@link #createForgottenSql}), together with the claim, or the claim stays. Processes that remember the key
     * ({@link RecentKeys}) go on to find a duplicate until they are told: {@link #forgotten}. Where it was {@linkplain Admissions admitted}, that is a
     * claim, too: forget both ({@link Admissions#forget}), and admit it again. While claims are {@linkplain Claims#moving moved}, forget it in both
     * tables. What its effect has appended to an outbox is not sent again while the entry is there.
     *
     * @param key as for {@link #find(MessageKey)}
     * @param who for who reads it later, such as a user's name
     * @param why the same, such as a ticket's number
     * @return whether it was there
     */
    public Mono<Boolean> forget(MessageKey key, String who, String why) {
        given("key", key);
        writtenDown("who", who);
        writtenDown("why", why);
        return onConnection(connection -> rows.forget(connection, key.consumer(), key.id(), who, why))
                .onErrorStop();
    }

    /** SQL that creates the table of what was forgotten: the claim table's name with {@code _forgotten} behind. May be run again. */
    public String createForgottenSql() {
        return rows.createForgottenSql();
    }

    /**
     * Creates the table of what was forgotten, if it is not there. It is for a migration: it needs CREATE on the schema and, where the table is
     * there already, to own it.
     */
    public Mono<Void> createForgotten() {
        return rows.createForgotten(connections).onErrorStop();
    }

    /**
     * The keys that are forgotten, by whichever process, from a minute ago on; for a consumer's {@link RecentKeys} on every instance:
     *
     * <pre>{@code
     * claims.forgotten(Duration.ofSeconds(10), error -> log.warn(...)).subscribe(recentKeys::forget);
     * }</pre>
     *
     * @param every how often the database is asked
     * @param onError told why it could not be asked; the next time it is asked for what was forgotten since it last answered
     * @return does not end by itself; a key is emitted several times
     */
    public Flux<MessageKey> forgotten(Duration every, Consumer<? super Throwable> onError) {
        positive("every", every);
        given("onError", onError);
        return Flux.defer(() -> {
                    AtomicReference<@Nullable Instant> answered = new AtomicReference<>();
                    return forgottenSince(answered)
                            .onErrorResume(error -> {
                                onError.accept(error);
                                return Flux.empty();
                            })
                            .repeatWhen(ends -> ends.concatMap(end -> Mono.delay(every)));
                })
                .onErrorStop();
    }

    /** @param answered when the database last answered, by its clock; null if it has not yet */
    private Flux<MessageKey> forgottenSince(AtomicReference<@Nullable Instant> answered) {
        return onConnection(connection -> ClaimRows.now(connection).flatMap(now -> {
                    Instant last = answered.get();
                    return rows.forgottenSince(connection, (last == null ? now : last).minus(UNDER_WAY))
                            .doOnNext(keys -> answered.set(now));
                }))
                .flatMapIterable(keys -> keys)
                .map(key -> new MessageKey(key.consumer(), key.id()));
    }

    /** How large the table is, from the catalogue. */
    public Mono<ClaimRows.Size> size() {
        return onConnection(rows::size).onErrorStop();
    }

    /** When the oldest claim was made; empty without one. It reads the whole table: there is no index on the time. */
    public Mono<Instant> oldest() {
        return onConnection(rows::oldest).onErrorStop();
    }

    private <R> Mono<R> onConnection(Function<Connection, Mono<R>> work) {
        return transactions
                .withoutTransaction(work)
                .onErrorMap(
                        UnfitTableException.class, e -> new InvalidSetupException(String.valueOf(e.getMessage()), e))
                .contextWrite(CallersTransaction::without);
    }

    private static KeptClaim claim(ClaimRows.Claim row) {
        return new KeptClaim(row.consumer(), row.id(), row.claimedAt(), row.fingerprint());
    }

    @Override
    public String toString() {
        return "KeptClaims[" + rows + "]";
    }
}
