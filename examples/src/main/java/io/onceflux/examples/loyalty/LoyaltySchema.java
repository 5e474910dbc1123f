package io.onceflux.examples.loyalty;

import io.onceflux.KeptClaims;
import io.onceflux.postgres.ClaimTable;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import org.springframework.core.io.ClassPathResource;
import org.springframework.r2dbc.connection.init.ScriptUtils;
import reactor.core.publisher.Mono;

/** The tables of the service, with those of the library. Created by a deployment, as a migration would, not by instances. */
public final class LoyaltySchema {

    private LoyaltySchema() {}

    public static Mono<Void> create(ConnectionFactory connections) {
        return ClaimTable.processedMessages()
                .create(connections)
                .then(KeptClaims.in(ClaimTable.processedMessages(), connections).createForgotten())
                .then(Mono.usingWhen(
                        connections.create(),
                        connection -> ScriptUtils.executeSqlScript(
                                connection, new ClassPathResource("loyalty.sql", LoyaltySchema.class)),
                        Connection::close));
    }
}
