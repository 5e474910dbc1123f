package io.onceflux.benchmarks.partitions;

import io.onceflux.Retention;
import io.onceflux.benchmarks.scenario.Site;
import io.onceflux.postgres.ClaimTable;
import io.r2dbc.spi.ConnectionFactories;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;

/** A claim table with the claims of some days before today, as many of each. */
record FilledTable(Site site, boolean inPartitions, int days, long claims) {

    private static final Duration LIMIT = Duration.ofMinutes(1);

    String name() {
        return inPartitions ? "partitions" : "batches";
    }

    ClaimTable table() {
        return Drops.table(inPartitions);
    }

    /** The index of the plain table is made at the end, which is many times faster than a row at a time; those of partitions are small. */
    void fill() {
        run(table().createSql());
        if (inPartitions) {
            Retention.of(table(), Duration.ofDays(days))
                    .run(ConnectionFactories.get(site.r2dbcUrl()))
                    .then()
                    .block(LIMIT);
        } else {
            run("ALTER TABLE processed_messages DROP CONSTRAINT processed_messages_pkey");
        }
        for (int day = days; day > 0; day--) {
            run(
                    "INSERT INTO processed_messages (consumer, message_key, processed_at%s) SELECT 'old', lpad(n::text, 36, '0'), %s%s"
                                    .formatted(
                                            inPartitions ? ", bucket" : "",
                                            "now() - interval '%d days 12 hours'".formatted(day - 1),
                                            bucket(day))
                            + " FROM generate_series(%d, %d) n"
                                    .formatted(day * 1_000_000_000L, day * 1_000_000_000L + claims / days - 1));
        }
        if (!inPartitions) {
            run(
                    "SET maintenance_work_mem = '512MB'; ALTER TABLE processed_messages ADD PRIMARY KEY (consumer, message_key)");
        }
        run("VACUUM ANALYZE processed_messages");
        run("CHECKPOINT");
    }

    private String bucket(int day) {
        return inPartitions ? ", (now() AT TIME ZONE 'UTC')::date - " + day : "";
    }

    void requireDaysLeft(int expected) {
        long left = number("SELECT count(*) FROM processed_messages WHERE consumer = 'old'");
        if (left != expected * (claims / days)) {
            throw new IllegalStateException(
                    "%,d old claims are left in %s, and not those of %d days".formatted(left, site, expected));
        }
    }

    private long number(String sql) {
        try (Connection connection = connect();
                Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery(sql)) {
            rows.next();
            return rows.getLong(1);
        } catch (SQLException e) {
            throw new IllegalStateException("the claims of " + site + " could not be counted", e);
        }
    }

    private void run(String sql) {
        try (Connection connection = connect();
                Statement statement = connection.createStatement()) {
            statement.execute(sql);
        } catch (SQLException e) {
            throw new IllegalStateException("the claims of " + site + " could not be made", e);
        }
    }

    private Connection connect() throws SQLException {
        return DriverManager.getConnection(site.jdbcUrl(), site.user(), site.password());
    }
}
