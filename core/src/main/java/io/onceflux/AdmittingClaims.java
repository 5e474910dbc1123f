package io.onceflux;

import io.onceflux.postgres.AdmissionTable;
import io.onceflux.postgres.AdmissionTable.Admitted;
import io.onceflux.postgres.UnfitTableException;
import io.r2dbc.spi.Connection;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Claims beside a table of what was refused for its age, and may be admitted by hand. A message that is too old is fresh only if it was
 * admitted, and its admission used by nobody; where the other claims have a place for it, only if it is fresh there, too. An admission does not
 * outlive that claim unused: a duplicate uses it, and a conflict takes it back.
 */
final class AdmittingClaims implements Claims {

    private static final Claimed NOTHING = new Claimed(Set.of());
    private static final String TAKEN_BACK = "taken back: other content has been applied under this id";

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
        AdmissionTable usable = checked;
        return usable == null
                ? Mono.error(() -> new IllegalStateException("the admission table has not been verified"))
                : new Claiming(usable, inTransaction, asked, lockTimeout).run();
    }

    /** Claims that are asked for in one transaction. */
    private final class Claiming {

        private final AdmissionTable usable;
        private final Connection inTransaction;
        private final List<Claim> asked;
        private final Duration lockTimeout;
        private final String consumer;

        /** By id, as far as it was looked for. */
        private final Map<String, Admitted> admitted = new HashMap<>();

        Claiming(AdmissionTable usable, Connection inTransaction, List<Claim> asked, Duration lockTimeout) {
            this.usable = usable;
            this.inTransaction = inTransaction;
            this.asked = asked;
            this.lockTimeout = lockTimeout;
            this.consumer = asked.get(0).key().consumer();
        }

        Mono<Claimed> run() {
            List<Claim> tooOld =
                    asked.stream().filter(claim -> claim.tooOld() != null).toList();
            return lookFor(tooOld)
                    .then(Mono.defer(this::claimTheRest))
                    .flatMap(became -> lookFor(withoutPlace(became))
                            .then(Mono.defer(
                                    () -> tooOld.isEmpty() && became.refused().isEmpty()
                                            ? Mono.just(became)
                                            : decide(became))));
        }

        private Mono<Void> lookFor(List<Claim> these) {
            List<String> ids = these.stream().map(claim -> claim.key().id()).toList();
            return ids.isEmpty()
                    ? Mono.empty()
                    : usable.admitted(inTransaction, consumer, ids, lockTimeout)
                            .doOnNext(admitted::putAll)
                            .then();
        }

        /** Those that are not too old, and those that were admitted and not used. */
        private Mono<Claimed> claimTheRest() {
            List<Claim> rest = asked.stream()
                    .filter(claim -> claim.tooOld() == null || isFree(claim))
                    .map(claim ->
                            claim.tooOld() == null ? claim : new Claim(claim.key(), claim.fingerprint(), claim.time()))
                    .toList();
            return rest.isEmpty() ? Mono.just(NOTHING) : claims.claim(inTransaction, rest, lockTimeout);
        }

        private boolean isFree(Claim claim) {
            Admitted found = admitted.get(claim.key().id());
            return found != null && !found.isUsed();
        }

        /** Refused by the other claims, and nothing is known of them here. */
        private List<Claim> withoutPlace(Claimed became) {
            return asked.stream()
                    .filter(claim -> became.refused().containsKey(claim.key()) && claim.tooOld() == null)
                    .toList();
        }

        private Mono<Claimed> decide(Claimed became) {
            Set<MessageKey> fresh = new HashSet<>(became.fresh());
            Set<MessageKey> conflicting = new HashSet<>(became.conflicting());
            Map<MessageKey, String> refused = new HashMap<>();
            Map<String, @Nullable Long> used = new HashMap<>();
            List<String> takenBack = new ArrayList<>();
            for (Claim claim : asked) {
                MessageKey key = claim.key();
                String noPlace = became.refused().get(key);
                String why = noPlace == null ? claim.tooOld() : noPlace;
                Admitted found = admitted.get(key.id());
                if (why == null) {
                    continue; // It is as the other claims say.
                }
                if (found == null) {
                    refused.put(key, why);
                } else if (found.isUsed()) {
                    if (isOther(claim.fingerprint(), found.fingerprint())) {
                        conflicting.add(key);
                    }
                } else if (conflicting.contains(key)) {
                    takenBack.add(key.id());
                } else {
                    if (noPlace != null) {
                        fresh.add(key);
                    }
                    // By a duplicate, too: it has been applied, and once its claim is gone nothing else would say so.
                    used.put(key.id(), claim.fingerprint());
                }
            }
            return usable.use(inTransaction, consumer, used)
                    .thenMany(Flux.fromIterable(takenBack))
                    .concatMap(id -> usable.forget(inTransaction, consumer, id, TAKEN_BACK))
                    .then(usable.refuse(inTransaction, consumer, toBeAdmitted(refused)))
                    .thenReturn(new Claimed(fresh, conflicting, refused));
        }

        /** Not what is refused because it is of a time to come: it will be in time. */
        private Map<String, String> toBeAdmitted(Map<MessageKey, String> refused) {
            Instant now = Instant.now();
            Map<String, String> reasons = new HashMap<>();
            for (Claim claim : asked) {
                String why = refused.get(claim.key());
                boolean isOfThePast = claim.tooOld() != null
                        || (claim.time() != null && claim.time().isBefore(now));
                if (why != null && isOfThePast) {
                    reasons.put(claim.key().id(), why);
                }
            }
            return reasons;
        }
    }

    private static boolean isOther(@Nullable Long fingerprint, @Nullable Long kept) {
        return fingerprint != null && kept != null && !fingerprint.equals(kept);
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
