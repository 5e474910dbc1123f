package io.onceflux;

import io.onceflux.postgres.CheckedClaimTable;
import io.onceflux.postgres.CheckedClaimTable.Taken;
import io.onceflux.postgres.ClaimTable;
import io.onceflux.postgres.NewClaim;
import io.onceflux.postgres.UnfitTableException;
import io.onceflux.postgres.UnstorableIdException;
import io.r2dbc.spi.Connection;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/** {@link Claims} in a {@link ClaimTable}: keys become column values and back. */
final class TableClaims implements Claims {

    /** Which consumer a one-column table of this process serves, by the table's identity. */
    private static final Map<String, String> OWNERS = new ConcurrentHashMap<>();

    private final ClaimTable table;
    private volatile @Nullable CheckedClaimTable checked;

    TableClaims(ClaimTable table) {
        this.table = table;
    }

    @Override
    public Mono<List<String>> verify(Connection connection, String consumer) {
        return table.check(connection)
                .map(fit -> {
                    fit.requireHolds(consumer);
                    requireSoleConsumer(fit, consumer);
                    checked = fit;
                    return fit.warnings();
                })
                .onErrorMap(
                        UnfitTableException.class, e -> new InvalidSetupException(String.valueOf(e.getMessage()), e));
    }

    boolean mayBeIn(ClaimTable other) {
        return table.mayBe(other);
    }

    private void requireSoleConsumer(CheckedClaimTable fit, String consumer) {
        if (!fit.hasOneColumnKey()) {
            return;
        }
        String owner = OWNERS.putIfAbsent(fit.identity(), consumer);
        if (owner != null && !owner.equals(consumer)) {
            throw new InvalidSetupException(
                    ("Table %s has a one-column key and serves consumer '%s' already; for '%s' it would take the same message"
                                    + " for a duplicate. Give '%s' a table of its own, or add a column for the consumer.")
                            .formatted(table, owner, consumer, consumer));
        }
    }

    @Override
    public Mono<Claimed> claim(Connection inTransaction, List<Claim> claims, Duration lockTimeout) {
        return usable().flatMap(usable -> {
            String consumer = claims.get(0).key().consumer();
            List<NewClaim> rows = claims.stream()
                    .map(claim -> new NewClaim(claim.key().id(), claim.fingerprint(), claim.time()))
                    .toList();
            Mono<Taken> taken =
                    inTransaction instanceof AttemptConnection attempt && usable.canClaimTogetherWithBegin(rows)
                            ? usable.claimTogetherWithBegin(attempt.togetherWithBegin(), consumer, rows, lockTimeout)
                            : usable.claim(inTransaction, consumer, rows, lockTimeout);
            return taken.flatMap(what -> what.isAllFresh(rows)
                            ? Mono.just(new Claimed(keysOf(claims, what.fresh())))
                            : usable.conflicting(inTransaction, consumer, what.duplicates(rows))
                                    .map(conflicting -> claimed(claims, what, conflicting)))
                    .onErrorMap(
                            UnstorableIdException.class, e -> new PermanentFailure(String.valueOf(e.getMessage()), e));
        });
    }

    private static Claimed claimed(List<Claim> claims, Taken taken, Set<String> conflicting) {
        Map<MessageKey, String> refused = new HashMap<>();
        taken.refused()
                .forEach((id, why) ->
                        refused.put(new MessageKey(claims.get(0).key().consumer(), id), why));
        return new Claimed(keysOf(claims, taken.fresh()), keysOf(claims, conflicting), refused);
    }

    @Override
    public Mono<Boolean> tryOut(Connection inTransaction, MessageKey nobodys, Duration lockTimeout) {
        return usable().flatMap(usable -> {
            Mono<Claimed> claim = Mono.defer(
                    () -> claim(inTransaction, List.of(new Claim(nobodys, null, usable.anyTime())), lockTimeout));
            return claim.flatMap(claimed -> claimed.refused().isEmpty()
                            ? Mono.just(claimed)
                            : claim) // The partition was dropped meanwhile; by now it is known which is there.
                    .map(claimed -> !claimed.fresh().isEmpty());
        });
    }

    @Override
    public boolean keepFingerprints() {
        return table.hasFingerprints();
    }

    @Override
    public boolean haveBuckets() {
        return table.hasBuckets();
    }

    private Mono<CheckedClaimTable> usable() {
        return Mono.justOrEmpty(checked)
                .switchIfEmpty(Mono.error(() -> new IllegalStateException("the claim table has not been verified")));
    }

    private static Set<MessageKey> keysOf(List<Claim> claims, Set<String> ids) {
        return claims.stream()
                .map(Claim::key)
                .filter(key -> ids.contains(key.id()))
                .collect(Collectors.toUnmodifiableSet());
    }

    @Override
    public Mono<Boolean> hasAny(Connection connection, String consumer) {
        return usable().flatMap(usable -> usable.hasAny(connection, consumer));
    }

    @Override
    public String toString() {
        return table.toString();
    }
}
