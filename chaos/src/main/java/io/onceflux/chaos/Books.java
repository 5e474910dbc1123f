package io.onceflux.chaos;

import static java.util.Objects.requireNonNull;

import io.onceflux.chaos.consumer.ChaosConsumer;
import io.onceflux.postgres.ClaimTable;
import io.onceflux.postgres.DeadLetterTable;
import io.onceflux.postgres.OffsetTable;
import io.r2dbc.spi.ConnectionFactories;
import io.r2dbc.spi.Readable;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Function;
import org.springframework.r2dbc.core.DatabaseClient;

/** The tables that the effects write to, read directly and not through the proxy. Blocks. A connection a statement. */
final class Books {

    private static final Duration LIMIT = Duration.ofSeconds(30);

    /** A row of the ledger. */
    record Entry(String id, String customer, long points) {}

    private final boolean byPosition;
    private final DatabaseClient db;

    /** @param byPosition whether there is a row for each partition, instead of a claim for each message */
    Books(String url, boolean byPosition) {
        this.byPosition = byPosition;
        this.db = DatabaseClient.create(ConnectionFactories.get(url));
    }

    /** The ledger has no unique constraint on purpose: a doubled effect shows as a second row. */
    void open(List<String> customers) {
        run(
                byPosition
                        ? OffsetTable.consumerOffsets().createSql()
                        : ClaimTable.processedMessages().createSql());
        run(DeadLetterTable.deadLetters().createSql());
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

    /** In the order in which they were written. */
    List<Entry> entries() {
        return rows(
                "SELECT message_id, customer, points FROM ledger ORDER BY entry",
                row -> new Entry(
                        text(row, "message_id"), text(row, "customer"), requireNonNull(row.get("points", Long.class))));
    }

    Map<String, Long> balances() {
        Map<String, Long> balances = new TreeMap<>();
        rows(
                        "SELECT customer, points FROM balances",
                        row -> Map.entry(text(row, "customer"), requireNonNull(row.get("points", Long.class))))
                .forEach(balance -> balances.put(balance.getKey(), balance.getValue()));
        return balances;
    }

    /** The keys that are claimed; empty if there are no claims. */
    Optional<Set<String>> claims() {
        return byPosition ? Optional.empty() : Optional.of(new TreeSet<>(claimed()));
    }

    private List<String> claimed() {
        return rows(
                "SELECT message_key FROM processed_messages WHERE consumer = '" + ChaosConsumer.NAME + "'",
                row -> text(row, "message_key"));
    }

    /** The next offset of each partition that is fenced. */
    Map<Integer, Long> fences() {
        Map<Integer, Long> fences = new TreeMap<>();
        rows(
                        "SELECT partition, next_offset FROM consumer_offsets WHERE consumer = '" + ChaosConsumer.NAME
                                + "'",
                        row -> Map.entry(
                                requireNonNull(row.get("partition", Integer.class)),
                                requireNonNull(row.get("next_offset", Long.class))))
                .forEach(fence -> fences.put(fence.getKey(), fence.getValue()));
        return fences;
    }

    /** Those that are kept in the table. */
    List<Letter> deadLetters() {
        return rows(
                "SELECT message_id, times, reason, body FROM dead_letters ORDER BY number",
                row -> Letter.inTable(
                        text(row, "message_id"),
                        requireNonNull(row.get("times", Integer.class)),
                        text(row, "reason"),
                        requireNonNull(row.get("body", byte[].class))));
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

    private <R> List<R> rows(String sql, Function<Readable, R> read) {
        return requireNonNull(db.sql(sql).map(read).all().collectList().block(LIMIT));
    }

    private static String text(Readable row, String column) {
        return requireNonNull(row.get(column, String.class), column);
    }
}
