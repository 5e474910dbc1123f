package io.onceflux.benchmarks.scenario;

import io.onceflux.postgres.ClaimTable;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Map;

/** The tables of a case. A case that was fast and wrong fails here. */
public final class Books {

    private static final String OLD = "old";

    private final Site site;

    private Books(Site site) {
        this.site = site;
    }

    /** Makes the tables in an empty database. */
    public static Books open(Site site) {
        Books books = new Books(site);
        try (Connection connection = books.connect();
                Statement statement = connection.createStatement();
                PreparedStatement customers =
                        connection.prepareStatement("INSERT INTO balances (customer_id) SELECT unnest(?)")) {
            statement.execute(ClaimTable.processedMessages().createSql());
            statement.execute(Statements.TABLES);
            customers.setArray(1, connection.createArrayOf("text", Orders.customerIds()));
            customers.executeUpdate();
            statement.execute("VACUUM ANALYZE");
            return books;
        } catch (SQLException e) {
            throw new IllegalStateException("the tables of " + site + " could not be made", e);
        }
    }

    /** Fills the claim table with so many claims of random keys, and gives it statistics. */
    public void fillClaims(long rows) {
        try (Connection connection = connect();
                Statement statement = connection.createStatement()) {
            statement.execute("SET maintenance_work_mem = '512MB'");
            // With its index made at the end, which is many times faster than a row at a time.
            statement.execute("ALTER TABLE processed_messages DROP CONSTRAINT processed_messages_pkey");
            statement.execute("INSERT INTO processed_messages (consumer, message_key)"
                    + " SELECT 'benchmark', gen_random_uuid()::text FROM generate_series(1, " + rows + ")");
            statement.execute("ALTER TABLE processed_messages ADD PRIMARY KEY (consumer, message_key)");
            statement.execute("VACUUM ANALYZE processed_messages");
            statement.execute("CHECKPOINT");
        } catch (SQLException e) {
            throw new IllegalStateException("the claim table of " + site + " could not be filled", e);
        }
    }

    /** Adds so many claims of another consumer that are a month old. */
    public void addOldClaims(long rows) {
        try (Connection connection = connect();
                Statement statement = connection.createStatement()) {
            statement.execute("INSERT INTO processed_messages (consumer, message_key, processed_at)" + " SELECT '" + OLD
                    + "', n::text, now() - interval '30 days' FROM generate_series(1, " + rows + ") n");
            statement.execute("VACUUM ANALYZE processed_messages");
            statement.execute("CHECKPOINT");
        } catch (SQLException e) {
            throw new IllegalStateException("the claim table of " + site + " could not be filled", e);
        }
    }

    /** How many orders are credited by now. */
    public long credited() {
        return number("SELECT count(*) FROM point_ledger");
    }

    public long claims() {
        return number("SELECT count(*) FROM processed_messages");
    }

    /** Bytes of the claim table without its index, and of the index. */
    public Map<String, Long> sizesOfClaims() {
        return Map.of(
                "table", number("SELECT pg_table_size('processed_messages')"),
                "index", number("SELECT pg_indexes_size('processed_messages')"));
    }

    /**
     * Compares the books with what was counted.
     *
     * @param orders how many different orders there were
     * @param claimed whether each was claimed
     * @throws IllegalStateException if an effect is missing, or happened twice
     */
    public void requireOnce(long orders, boolean claimed) {
        same("rows in the ledger", orders, number("SELECT count(*) FROM point_ledger"));
        same("different orders in the ledger", orders, number("SELECT count(DISTINCT order_id) FROM point_ledger"));
        same(
                "claims",
                claimed ? orders : 0,
                number("SELECT count(*) FROM processed_messages WHERE consumer <> '" + OLD + "'"));
        same(
                "points of the customers",
                number("SELECT coalesce(sum(points), 0)::bigint FROM point_ledger"),
                number("SELECT sum(points)::bigint FROM balances"));
    }

    private void same(String what, long expected, long found) {
        if (expected != found) {
            throw new IllegalStateException(
                    "The books are wrong: %,d %s instead of %,d in %s".formatted(found, what, expected, site));
        }
    }

    private long number(String sql) {
        try (Connection connection = connect();
                Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery(sql)) {
            rows.next();
            return rows.getLong(1);
        } catch (SQLException e) {
            throw new IllegalStateException("the books of " + site + " could not be read", e);
        }
    }

    private Connection connect() throws SQLException {
        return DriverManager.getConnection(site.jdbcUrl(), site.user(), site.password());
    }
}
