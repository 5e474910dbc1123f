package io.onceflux;

import io.onceflux.postgres.LockWaits;
import io.onceflux.postgres.UnfitTableException;
import io.onceflux.postgres.UniqueKey;
import io.r2dbc.spi.Connection;
import java.time.Duration;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/**
 * No claims: the effect decides by itself whether it happens. What is left of a claim is the limit for waits, which is set together with
 * BEGIN and shows that there is a transaction.
 */
final class WithoutClaims implements Claims {

    private final @Nullable UniqueKey naturalKey;
    private volatile @Nullable LockWaits lockWaits;

    /** @param naturalKey what makes the effect happen once; looked at before the first message */
    WithoutClaims(@Nullable UniqueKey naturalKey) {
        this.naturalKey = naturalKey;
    }

    @Override
    public boolean areKept() {
        return false;
    }

    @Override
    public Mono<List<String>> verify(Connection connection, String consumer) {
        return LockWaits.check(connection)
                .doOnNext(fit -> lockWaits = fit)
                .flatMap(fit -> naturalKey == null
                        ? Mono.just(fit.warnings())
                        : naturalKey.check(connection).map(ofKey -> both(fit.warnings(), ofKey)))
                .onErrorMap(
                        UnfitTableException.class, e -> new InvalidSetupException(String.valueOf(e.getMessage()), e));
    }

    private static List<String> both(List<String> some, List<String> others) {
        return Stream.concat(some.stream(), others.stream()).toList();
    }

    @Override
    public Mono<Claimed> claim(Connection inTransaction, List<Claim> claims, Duration lockTimeout) {
        return bounded(inTransaction, lockTimeout)
                .then(Mono.fromSupplier(
                        () -> new Claimed(claims.stream().map(Claim::key).collect(Collectors.toUnmodifiableSet()))));
    }

    private Mono<Void> bounded(Connection inTransaction, Duration lockTimeout) {
        LockWaits usable = lockWaits;
        if (usable == null) {
            return Mono.error(new IllegalStateException("the database has not been verified"));
        }
        return inTransaction instanceof AttemptConnection attempt && usable.canBoundTogetherWithBegin()
                ? usable.boundTogetherWithBegin(attempt.togetherWithBegin(), lockTimeout)
                : LockWaits.bound(inTransaction, lockTimeout);
    }

    @Override
    public Mono<Boolean> tryOut(Connection inTransaction, MessageKey nobodys, Duration lockTimeout) {
        return bounded(inTransaction, lockTimeout)
                .then(LockWaits.tryWrite(inTransaction))
                .thenReturn(true);
    }

    @Override
    public String toString() {
        return naturalKey == null ? "no claims" : naturalKey.toString();
    }
}
