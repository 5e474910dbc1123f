package io.onceflux.testkit;

import io.onceflux.Claims;
import io.r2dbc.spi.ConnectionFactory;
import org.junit.jupiter.api.AfterEach;

/** The same contract as the claims in memory keep. */
class PostgresClaimsTest extends ClaimsContract {

    private final TestDatabase database = new TestDatabase();
    private final Claims claims = Claims.in(TestDatabase.CLAIMS);

    @Override
    protected Claims claims() {
        return claims;
    }

    @Override
    protected ConnectionFactory connections() {
        return database.pool;
    }

    @AfterEach
    void close() {
        closeConnections();
        database.close();
    }
}
