package io.onceflux.benchmarks.variant;

import io.onceflux.Claims;
import io.r2dbc.spi.Connection;
import java.time.Duration;
import java.util.List;
import java.util.stream.Collectors;
import reactor.core.publisher.Mono;

/** Takes every message for a fresh one: what is left of a consumer without the claim. */
final class NoClaims implements Claims {

    @Override
    public Mono<List<String>> verify(Connection connection, String consumer) {
        return Mono.just(List.of());
    }

    @Override
    public Mono<Claimed> claim(Connection inTransaction, List<Claim> claims, Duration lockTimeout) {
        return Mono.just(new Claimed(claims.stream().map(Claim::key).collect(Collectors.toUnmodifiableSet())));
    }

    @Override
    public String toString() {
        return "no claims";
    }
}
