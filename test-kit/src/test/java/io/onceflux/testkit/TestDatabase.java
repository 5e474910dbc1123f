package io.onceflux.testkit;

import io.onceflux.postgres.ClaimTable;
import io.onceflux.services.PostgresService;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.pool.ConnectionPoolConfiguration;
import io.r2dbc.spi.ConnectionFactories;
import java.time.Duration;
import java.util.Objects;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.publisher.Mono;

/** A database of its own on the PostgreSQL of the tests, with a table of points. */
final class TestDatabase implements AutoCloseable {

    private static final Duration LIMIT = Duration.ofSeconds(30);

    static final ClaimTable CLAIMS = ClaimTable.processedMessages().withFingerprintColumn("fingerprint");

    private final PostgresService postgres = PostgresService.shared();
    final ConnectionPool pool = new ConnectionPool(
            ConnectionPoolConfiguration.builder(ConnectionFactories.get(postgres.r2dbcUrl(postgres.newDatabase())))
                    .maxSize(20)
                    .build());

    TestDatabase() {
        CLAIMS.create(pool).block(LIMIT);
        run("CREATE TABLE points (customer text PRIMARY KEY, points bigint NOT NULL)");
        run("CREATE TABLE ledger (number text NOT NULL)");
    }

    void run(String sql) {
        DatabaseClient.create(pool).sql(sql).then().block(LIMIT);
    }

    Mono<Long> count(String from) {
        return DatabaseClient.create(pool)
                .sql("SELECT count(*) FROM " + from)
                .map(row -> Objects.requireNonNull(row.get(0, Long.class)))
                .one();
    }

    @Override
    public void close() {
        pool.disposeLater().block(LIMIT);
    }
}
