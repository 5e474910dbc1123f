package io.onceflux.testkit;

import io.onceflux.Claims;
import io.onceflux.MessageKey;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.R2dbcTransientResourceException;
import io.r2dbc.spi.Result;
import io.r2dbc.spi.Wrapped;
import java.time.Duration;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/** Claims of {@link InMemoryDatabase}. */
final class InMemoryClaims implements Claims {

    private final Map<MessageKey, Kept> kept = new HashMap<>();

    /** A claim; final once its transaction has committed. */
    private static final class Kept {

        final InMemoryConnection by;
        final @Nullable Long fingerprint;
        final Sinks.Empty<Void> decided = Sinks.empty();
        boolean committed;

        Kept(InMemoryConnection by, @Nullable Long fingerprint) {
            this.by = by;
            this.fingerprint = fingerprint;
        }
    }

    @Override
    public Mono<List<String>> verify(Connection connection, String consumer) {
        return Mono.just(List.of());
    }

    @Override
    public boolean keepFingerprints() {
        return true;
    }

    /** In the order of the keys, so that two transactions cannot wait for each other. */
    @Override
    public Mono<Claimed> claim(Connection inTransaction, List<Claim> claims, Duration lockTimeout) {
        InMemoryConnection connection = unwrap(inTransaction);
        return Flux.from(inTransaction.createStatement(InMemoryConnection.CLAIM).execute())
                .concatMap(Result::getRowsUpdated)
                .then(Mono.defer(() -> claim(connection, claims, lockTimeout)));
    }

    private Mono<Claimed> claim(InMemoryConnection connection, List<Claim> claims, Duration lockTimeout) {
        return Mono.defer(() -> {
            connection.requireTransaction();
            Set<MessageKey> fresh = new HashSet<>();
            Set<MessageKey> conflicting = new HashSet<>();
            return Flux.fromStream(claims.stream()
                            .sorted(Comparator.comparing(claim -> claim.key().id())))
                    .concatMap(claim -> claim(connection, claim, lockTimeout).doOnNext(found -> {
                        if (found.isNew()) {
                            fresh.add(claim.key());
                        } else if (isOther(claim.fingerprint(), found.kept().fingerprint)) {
                            conflicting.add(claim.key());
                        }
                    }))
                    .then(Mono.fromSupplier(() -> new Claimed(fresh, conflicting, Map.of())));
        });
    }

    private static boolean isOther(@Nullable Long one, @Nullable Long other) {
        return one != null && other != null && !one.equals(other);
    }

    /** What is kept for a key: a new one, or one that was there. */
    private record Found(Kept kept, boolean isNew) {}

    private Mono<Found> claim(InMemoryConnection connection, Claim claim, Duration lockTimeout) {
        Mono<Found> attempt = Mono.defer(() -> {
            Found found = find(connection, claim);
            return found.kept().by == connection || isCommitted(found.kept())
                    ? Mono.just(found)
                    : found.kept().decided.asMono().then(Mono.empty());
        });
        return attempt.repeatWhenEmpty(Integer.MAX_VALUE, rounds -> rounds)
                .timeout(
                        lockTimeout,
                        Mono.error(() -> new R2dbcTransientResourceException(
                                "canceling statement due to lock timeout", "55P03")));
    }

    private synchronized boolean isCommitted(Kept claim) {
        return claim.committed;
    }

    private synchronized Found find(InMemoryConnection connection, Claim claim) {
        Kept there = kept.get(claim.key());
        if (there != null) {
            return new Found(there, false);
        }
        Kept own = new Kept(connection, claim.fingerprint());
        kept.put(claim.key(), own);
        connection.atEnd(committed -> decide(claim.key(), own, committed));
        return new Found(own, true);
    }

    private void decide(MessageKey key, Kept claim, boolean committed) {
        synchronized (this) {
            claim.committed = committed;
            if (!committed) {
                kept.remove(key, claim);
            }
        }
        claim.decided.emitEmpty(Sinks.EmitFailureHandler.FAIL_FAST);
    }

    private static InMemoryConnection unwrap(Connection connection) {
        Object at = connection;
        while (!(at instanceof InMemoryConnection)) {
            if (!(at instanceof Wrapped<?> wrapped)) {
                throw new IllegalArgumentException("these claims are of an InMemoryDatabase, and " + at
                        + " is no connection" + " of one: give it to build(...), too");
            }
            at = wrapped.unwrap();
        }
        return (InMemoryConnection) at;
    }

    @Override
    public Mono<Boolean> hasAny(Connection connection, String consumer) {
        return Mono.fromSupplier(() -> hasAny(consumer));
    }

    private synchronized boolean hasAny(String consumer) {
        return kept.entrySet().stream()
                .anyMatch(one ->
                        one.getValue().committed && one.getKey().consumer().equals(consumer));
    }

    @Override
    public String toString() {
        return "memory";
    }
}
