package io.onceflux;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.postgres.ClaimTable;
import io.onceflux.services.PostgresService;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.pool.ConnectionPoolConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.publisher.Mono;

/** A fresh database with the tables of the loyalty service; none of them stops an effect from happening twice. */
public final class Database implements AutoCloseable {

    private static final Duration LIMIT = Duration.ofSeconds(30);

    private final PostgresService service;
    private final String name;
    private final List<ConnectionPool> pools = new ArrayList<>();
    private final PostgresqlConnectionFactory direct;

    private Database(PostgresService service) {
        this.service = service;
        this.name = service.newDatabase();
        this.direct = new PostgresqlConnectionFactory(configuration().build());
        run("""
                CREATE TABLE balances (customer_id text PRIMARY KEY, points bigint NOT NULL);
                CREATE TABLE point_ledger (order_id text NOT NULL, customer_id text NOT NULL, points bigint NOT NULL,
                        entry bigint GENERATED ALWAYS AS IDENTITY)""");
        run(ClaimTable.processedMessages().createSql());
    }

    /** On the server that all tests share. */
    public static Database create() {
        return new Database(PostgresService.shared());
    }

    public static Database on(PostgresService service) {
        return new Database(service);
    }

    public PostgresqlConnectionConfiguration.Builder configuration() {
        return PostgresqlConnectionConfiguration.builder()
                .host(service.host())
                .port(service.port())
                .username(service.user())
                .password(service.password())
                .database(name)
                .connectTimeout(Duration.ofSeconds(5))
                .tcpNoDelay(true);
    }

    public String host() {
        return service.host();
    }

    public int port() {
        return service.port();
    }

    public String r2dbcUrl() {
        return service.r2dbcUrl(name);
    }

    /** A pool that is closed with this database; {@link #assertNothingLeaked} looks at it. */
    public ConnectionPool pool(int size) {
        return pool(size, configuration());
    }

    public ConnectionPool pool(int size, PostgresqlConnectionConfiguration.Builder configuration) {
        ConnectionPool pool = new ConnectionPool(
                ConnectionPoolConfiguration.builder(new PostgresqlConnectionFactory(configuration.build()))
                        .initialSize(0)
                        .maxSize(size)
                        .build());
        pools.add(pool);
        return pool;
    }

    /** A connection a statement, beside every pool. */
    public void run(String sql) {
        client().sql(sql).then().block(LIMIT);
    }

    public DatabaseClient client() {
        return DatabaseClient.create(direct);
    }

    public PostgresqlConnectionFactory direct() {
        return direct;
    }

    public long count(String sql) {
        return Objects.requireNonNull(client().sql(sql)
                .map(row -> Objects.requireNonNull(row.get(0, Long.class)))
                .one()
                .block(LIMIT));
    }

    public List<Map<String, Object>> rows(String sql) {
        return Objects.requireNonNull(
                client().sql(sql).fetch().all().collectList().block(LIMIT));
    }

    public List<String> texts(String sql) {
        return Objects.requireNonNull(client().sql(sql)
                .map(row -> Objects.requireNonNull(row.get(0, String.class)))
                .all()
                .collectList()
                .block(LIMIT));
    }

    public long claims() {
        return count("SELECT count(*) FROM processed_messages");
    }

    /** How many transactions have committed claims. */
    public long transactions() {
        return count("SELECT count(DISTINCT xmin::text) FROM processed_messages");
    }

    public long effects() {
        return count("SELECT count(*) FROM point_ledger");
    }

    public long effectsOf(String order) {
        return count("SELECT count(*) FROM point_ledger WHERE order_id = '" + order + "'");
    }

    /** The oracle: as many effects as claims as messages, and no effect twice. */
    public void assertAppliedOnce(long messages) {
        assertThat(rows("SELECT order_id, count(*) FROM point_ledger GROUP BY 1 HAVING count(*) > 1"))
                .as("effects that happened twice")
                .isEmpty();
        assertThat(effects()).as("effects").isEqualTo(messages);
        assertThat(claims()).as("claims").isEqualTo(messages);
    }

    /** No pool has a connection in use, and no session on the server has a transaction open. */
    public void assertNothingLeaked() {
        assertNoConnectionInUse();
        await().atMost(Duration.ofSeconds(10))
                .untilAsserted(() -> assertThat(openTransactions())
                        .as("open transactions: %s", sessions())
                        .isZero());
    }

    /** No pool has a connection in use. */
    public void assertNoConnectionInUse() {
        await().atMost(Duration.ofSeconds(10))
                .untilAsserted(() -> assertThat(pools)
                        .allSatisfy(pool -> assertThat(
                                        pool.getMetrics().orElseThrow().acquiredSize())
                                .as("connections in use")
                                .isZero()));
    }

    private List<String> sessions() {
        return texts("SELECT concat_ws(' ', pid, backend_type, state, wait_event, now() - xact_start, left(query, 80))"
                + " FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()");
    }

    public long openTransactions() {
        return count(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND xact_start IS NOT NULL"
                        + " AND pid <> pg_backend_pid()");
    }

    public void terminateSessions() {
        run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
                + " AND pid <> pg_backend_pid()");
    }

    public void empty() {
        run("TRUNCATE balances, point_ledger, processed_messages");
    }

    public void closePools() {
        pools.forEach(
                pool -> pool.disposeLater().onErrorResume(e -> Mono.empty()).block(LIMIT));
        pools.clear();
    }

    @Override
    public void close() {
        closePools();
    }
}
