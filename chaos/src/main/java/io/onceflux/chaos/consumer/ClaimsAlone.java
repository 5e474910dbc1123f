package io.onceflux.chaos.consumer;

import io.onceflux.Claims;
import io.onceflux.MessageKey;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import java.time.Duration;
import java.util.List;
import java.util.Set;
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
    public Mono<Set<MessageKey>> claim(Connection inTransaction, List<MessageKey> keys, Duration lockTimeout) {
        return Mono.usingWhen(
                beside.create(), connection -> claims.claim(connection, keys, lockTimeout), Connection::close);
    }
}
