package io.onceflux.chaos.consumer;

import io.onceflux.Claims;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import java.time.Duration;
import java.util.List;
import reactor.core.publisher.Mono;

/** Wrong on purpose: claims on a connection of its own, so that the claim commits without the effect. */
final class ClaimsAlone implements Claims {

    private final Claims claims;
    private final ConnectionFactory beside;

    ClaimsAlone(Claims claims, ConnectionFactory beside) {
        this.claims = claims;
        this.beside = beside;
    }

    @Override
    public Mono<List<String>> verify(Connection connection, String consumer) {
        return claims.verify(connection, consumer);
    }

    @Override
    public Mono<Claimed> claim(Connection inTransaction, List<Claim> wanted, Duration lockTimeout) {
        return Mono.usingWhen(
                beside.create(), connection -> claims.claim(connection, wanted, lockTimeout), Connection::close);
    }
}
