package io.onceflux;

import io.r2dbc.spi.Connection;
import java.time.Duration;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import reactor.core.publisher.Mono;

/** Claims in two places, in one transaction: a key is fresh only where it is in neither. */
final class MovingClaims implements Claims {

    private final Claims from;
    private final Claims to;

    MovingClaims(Claims from, Claims to) {
        this.from = from;
        this.to = to;
        Require.that(
                !from.toString().equals(to.toString()),
                "claims cannot be moved from %s to itself: what was claimed in the one would be a duplicate in the other"
                        .formatted(from));
        Require.that(
                !from.haveBuckets(),
                "claims cannot be moved from %s, which has partitions: what it refused would be claimed in %s all the same"
                        .formatted(from, to));
        Require.that(
                !from.followSource() && !to.followSource() && from.areKept() && to.areKept(),
                "claims can only be moved from one place with a row for each message to another, not from %s to %s"
                        .formatted(from, to));
    }

    @Override
    public Mono<List<String>> verify(Connection connection, String consumer) {
        return from.verify(connection, consumer)
                .flatMap(ofFrom -> to.verify(connection, consumer).map(ofTo -> {
                    Set<String> both = new LinkedHashSet<>(ofFrom);
                    both.addAll(ofTo);
                    return List.copyOf(both);
                }));
    }

    /** What the new place refuses must leave nothing in the old one: it is not applied, and could be replayed. */
    @Override
    public Mono<Claimed> claim(Connection inTransaction, List<Claim> claims, Duration lockTimeout) {
        return to.claim(inTransaction, claims, lockTimeout).flatMap(there -> {
            List<Claim> admitted = claims.stream()
                    .filter(claim -> !there.refused().containsKey(claim.key()))
                    .toList();
            return admitted.isEmpty()
                    ? Mono.just(there)
                    : from.claim(inTransaction, admitted, lockTimeout).map(here -> both(there, here));
        });
    }

    private static Claimed both(Claimed there, Claimed here) {
        Set<MessageKey> fresh = new HashSet<>(there.fresh());
        fresh.retainAll(here.fresh());
        Set<MessageKey> conflicting = new HashSet<>(there.conflicting());
        conflicting.addAll(here.conflicting());
        return new Claimed(fresh, conflicting, there.refused());
    }

    @Override
    public Mono<Boolean> tryOut(Connection inTransaction, MessageKey nobodys, Duration lockTimeout) {
        return to.tryOut(inTransaction, nobodys, lockTimeout)
                .flatMap(there ->
                        from.tryOut(inTransaction, nobodys, lockTimeout).map(here -> there && here));
    }

    @Override
    public boolean keepFingerprints() {
        return from.keepFingerprints() && to.keepFingerprints();
    }

    @Override
    public boolean haveBuckets() {
        return to.haveBuckets();
    }

    @Override
    public Mono<Boolean> hasAny(Connection connection, String consumer) {
        return from.hasAny(connection, consumer)
                .filter(has -> has)
                .switchIfEmpty(Mono.defer(() -> to.hasAny(connection, consumer)));
    }

    @Override
    public String toString() {
        return from + " and " + to;
    }
}
