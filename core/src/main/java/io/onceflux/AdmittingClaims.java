package io.onceflux;

import io.onceflux.postgres.AdmissionTable;
import io.onceflux.postgres.AdmissionTable.Used;
import io.onceflux.postgres.UnfitTableException;
import io.r2dbc.spi.Connection;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/**
 * Claims beside a table of what was admitted by hand. A message that is too old is fresh only if it was admitted, and its admission used
 * by nobody; where the other claims take it, only if it is fresh there, too.
 */
final class AdmittingClaims implements Claims {

    private static final Claimed NOTHING = new Claimed(Set.of());

    private final Claims claims;
    private final AdmissionTable table;
    private volatile @Nullable AdmissionTable checked;

    AdmittingClaims(Claims claims, AdmissionTable table) {
        Require.that(
                !(claims instanceof MovingClaims),
                "messages cannot be admitted by hand while claims are moved: what %s refuses may be claimed in the old place"
                        .formatted(claims));
        this.claims = claims;
        this.table = table;
    }

    @Override
    public Mono<List<String>> verify(Connection connection, String consumer) {
        return table.check(connection)
                .onErrorMap(
                        UnfitTableException.class, e -> new InvalidSetupException(String.valueOf(e.getMessage()), e))
                .doOnNext(fit -> checked = fit)
                .then(Mono.defer(() -> claims.verify(connection, consumer)));
    }

    @Override
    public Mono<Claimed> claim(Connection inTransaction, List<Claim> asked, Duration lockTimeout) {
        List<MessageKey> tooOld = asked.stream()
                .filter(claim -> claim.tooOld() != null)
                .map(Claim::key)
                .toList();
        return use(inTransaction, tooOld, lockTimeout).flatMap(before -> {
            List<Claim> rest = asked.stream()
                    .filter(claim -> claim.tooOld() == null
                            || before.now().contains(claim.key().id()))
                    .map(claim -> new Claim(claim.key(), claim.fingerprint(), claim.time()))
                    .toList();
            Mono<Claimed> claimed =
                    rest.isEmpty() ? Mono.just(NOTHING) : claims.claim(inTransaction, rest, lockTimeout);
            return claimed.flatMap(became -> {
                List<MessageKey> refused = became.refused().keySet().stream()
                        .filter(key -> !before.now().contains(key.id()))
                        .toList();
                return use(inTransaction, refused, lockTimeout)
                        .map(behind -> tooOld.isEmpty() && refused.isEmpty()
                                ? became
                                : admitted(asked, became, before, behind));
            });
        });
    }

    private Mono<Used> use(Connection inTransaction, List<MessageKey> keys, Duration lockTimeout) {
        if (keys.isEmpty()) {
            return Mono.just(Used.NONE);
        }
        AdmissionTable usable = checked;
        return usable == null
                ? Mono.error(() -> new IllegalStateException("the admission table has not been verified"))
                : usable.use(
                        inTransaction,
                        keys.get(0).consumer(),
                        keys.stream().map(MessageKey::id).toList(),
                        lockTimeout);
    }

    /** What was admitted and has no place among the claims any more needs none. */
    private static Claimed admitted(List<Claim> asked, Claimed became, Used before, Used behind) {
        Set<MessageKey> fresh = new HashSet<>(became.fresh());
        Map<MessageKey, String> refused = new HashMap<>();
        for (Claim claim : asked) {
            MessageKey key = claim.key();
            String noPlace = became.refused().get(key);
            String why = noPlace == null ? claim.tooOld() : noPlace;
            if (isIn(key, before.now(), behind.now())) {
                if (noPlace != null) {
                    fresh.add(key);
                }
            } else if (why != null && !isIn(key, before.before(), behind.before())) {
                refused.put(key, why);
            }
        }
        return new Claimed(fresh, became.conflicting(), refused);
    }

    private static boolean isIn(MessageKey key, Collection<String> some, Collection<String> others) {
        return some.contains(key.id()) || others.contains(key.id());
    }

    @Override
    public boolean admitByHand() {
        return true;
    }

    @Override
    public Mono<Boolean> tryOut(Connection inTransaction, MessageKey nobodys, Duration lockTimeout) {
        return claims.tryOut(inTransaction, nobodys, lockTimeout);
    }

    @Override
    public boolean keepFingerprints() {
        return claims.keepFingerprints();
    }

    @Override
    public boolean haveBuckets() {
        return claims.haveBuckets();
    }

    @Override
    public Mono<Boolean> hasAny(Connection connection, String consumer) {
        return claims.hasAny(connection, consumer);
    }

    @Override
    public String toString() {
        return claims.toString();
    }
}
