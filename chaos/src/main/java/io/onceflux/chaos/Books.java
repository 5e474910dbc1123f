package io.onceflux.chaos;

import static java.util.Objects.requireNonNull;

import io.onceflux.chaos.consumer.ChaosConsumer;
import io.onceflux.postgres.ClaimTable;
import io.r2dbc.spi.ConnectionFactories;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.springframework.r2dbc.core.DatabaseClient;

/** The tables that the effects write to, read directly and not through the proxy. Blocks. A connection a statement. */
final class Books {

    private static final Duration LIMIT = Duration.ofSeconds(30);

    private final DatabaseClient db;

    Books(String url) {
        this.db = DatabaseClient.create(ConnectionFactories.get(url));
    }

    /** The ledger has no unique constraint on purpose: a doubled effect shows as a second row. */
    void open(List<String> customers) {
        run(ClaimTable.processedMessages().createSql());
        run("CREATE TABLE balances (customer text PRIMARY KEY, points bigint NOT NULL DEFAULT 0)");
        run("""
            CREATE TABLE ledger (
                entry bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                message_id text NOT NULL,
                customer text NOT NULL REFERENCES balances,
                points bigint NOT NULL CHECK (points > 0)
            )
            """);
        db.sql("INSERT INTO balances (customer) SELECT unnest(:customers)")
                .bind("customers", customers.toArray(String[]::new))
                .then()
                .block(LIMIT);
    }

    /** Rows in the ledger for each message that has some. */
    Map<String, Long> entries() {
        Map<String, Long> entries = new TreeMap<>();
        db.sql("SELECT message_id, count(*) AS entries FROM ledger GROUP BY message_id")
                .map(row -> Map.entry(
                        requireNonNull(row.get("message_id", String.class)),
                        requireNonNull(row.get("entries", Long.class))))
                .all()
                .doOnNext(entry -> entries.put(entry.getKey(), entry.getValue()))
                .then()
                .block(LIMIT);
        return entries;
    }

    Set<String> claims() {
        return new TreeSet<>(
                texts("SELECT message_key FROM processed_messages WHERE consumer = '" + ChaosConsumer.NAME + "'"));
    }

    /** Customers whose balance is not the sum of their entries. */
    List<String> wrongBalances() {
        return texts("""
                SELECT customer FROM balances LEFT JOIN ledger USING (customer)
                GROUP BY customer, balances.points HAVING balances.points <> coalesce(sum(ledger.points), 0)
                """);
    }

    long applied() {
        return count("SELECT count(DISTINCT message_id) FROM ledger");
    }

    /** Of whoever uses this database. */
    long openTransactions() {
        return count("""
                SELECT count(*) FROM pg_stat_activity
                WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()
                """);
    }

    void run(String sql) {
        db.sql(sql).then().block(LIMIT);
    }

    private long count(String sql) {
        return requireNonNull(db.sql(sql).mapValue(Long.class).one().block(LIMIT));
    }

    private List<String> texts(String sql) {
        return requireNonNull(
                db.sql(sql).mapValue(String.class).all().collectList().block(LIMIT));
    }
}
