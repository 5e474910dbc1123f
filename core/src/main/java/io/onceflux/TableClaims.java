package io.onceflux;

import io.onceflux.postgres.CheckedClaimTable;
import io.onceflux.postgres.ClaimTable;
import io.onceflux.postgres.UnfitTableException;
import io.onceflux.postgres.UnstorableIdException;
import io.r2dbc.spi.Connection;
import java.time.Duration;
import java.util.Collection;
import java.util.LinkedHashMap;
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
    public Mono<Set<MessageKey>> claim(Connection inTransaction, List<MessageKey> keys, Duration lockTimeout) {
        CheckedClaimTable usable = checked;
        if (usable == null) {
            return Mono.error(new IllegalStateException("the claim table has not been verified"));
        }
        String consumer = keys.get(0).consumer();
        List<String> ids = keys.stream().map(MessageKey::id).toList();
        Mono<Set<String>> claim =
                inTransaction instanceof AttemptConnection attempt && usable.canClaimTogetherWithBegin()
                        ? usable.claimTogetherWithBegin(attempt.togetherWithBegin(), consumer, ids, lockTimeout)
                        : usable.claim(inTransaction, consumer, ids, lockTimeout);
        return claim.map(fresh -> keysOf(keys, fresh))
                .onErrorMap(UnstorableIdException.class, e -> new PermanentFailure(String.valueOf(e.getMessage()), e));
    }

    @Override
    public boolean keepFingerprints() {
        return table.hasFingerprints();
    }

    @Override
    public Mono<Claimed> claimWithFingerprints(
            Connection inTransaction, Map<MessageKey, @Nullable Long> fingerprints, Duration lockTimeout) {
        CheckedClaimTable usable = checked;
        if (usable == null) {
            return Mono.error(new IllegalStateException("the claim table has not been verified"));
        }
        String consumer = fingerprints.keySet().iterator().next().consumer();
        Map<String, @Nullable Long> byId = new LinkedHashMap<>();
        fingerprints.forEach((key, fingerprint) -> byId.put(key.id(), fingerprint));
        Mono<Set<String>> claim =
                inTransaction instanceof AttemptConnection attempt && usable.canClaimTogetherWithBegin()
                        ? usable.claimTogetherWithBegin(attempt.togetherWithBegin(), consumer, byId, lockTimeout)
                        : usable.claim(inTransaction, consumer, byId, lockTimeout);
        return claim.flatMap(fresh -> usable.conflicting(inTransaction, consumer, without(byId, fresh))
                        .map(conflicting -> new Claimed(
                                keysOf(fingerprints.keySet(), fresh), keysOf(fingerprints.keySet(), conflicting))))
                .onErrorMap(UnstorableIdException.class, e -> new PermanentFailure(String.valueOf(e.getMessage()), e));
    }

    private static Map<String, @Nullable Long> without(Map<String, @Nullable Long> all, Set<String> those) {
        Map<String, @Nullable Long> others = new LinkedHashMap<>(all);
        others.keySet().removeAll(those);
        return others;
    }

    private static Set<MessageKey> keysOf(Collection<MessageKey> keys, Set<String> ids) {
        return keys.stream().filter(key -> ids.contains(key.id())).collect(Collectors.toUnmodifiableSet());
    }

    @Override
    public Mono<Boolean> hasAny(Connection connection, String consumer) {
        CheckedClaimTable usable = checked;
        return usable == null
                ? Mono.error(new IllegalStateException("the claim table has not been verified"))
                : usable.hasAny(connection, consumer);
    }

    @Override
    public String toString() {
        return table.toString();
    }
}
