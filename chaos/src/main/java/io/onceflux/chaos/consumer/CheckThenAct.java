package io.onceflux.chaos.consumer;

import io.onceflux.Claims;
import io.r2dbc.spi.Connection;
import java.time.Duration;
import java.util.List;
import java.util.stream.Collectors;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Wrong on purpose: asks whether a message was credited, and claims nothing, so that two may ask before either has credited. */
final class CheckThenAct implements Claims {

    @Override
    public Mono<List<String>> verify(Connection connection, String consumer) {
        return Mono.just(List.of());
    }

    @Override
    public Mono<Claimed> claim(Connection inTransaction, List<Claim> claims, Duration lockTimeout) {
        String[] ids = claims.stream().map(claim -> claim.key().id()).toArray(String[]::new);
        return Flux.from(inTransaction
                        .createStatement("SELECT DISTINCT message_id FROM ledger WHERE message_id = ANY($1)")
                        .bind(0, ids)
                        .execute())
                .concatMap(result -> result.map(row -> row.get(0, String.class)))
                .collect(Collectors.toSet())
                .map(credited -> new Claimed(claims.stream()
                        .map(Claim::key)
                        .filter(key -> !credited.contains(key.id()))
                        .collect(Collectors.toSet())));
    }
}
