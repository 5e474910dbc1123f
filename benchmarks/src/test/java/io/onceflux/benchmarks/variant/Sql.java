package io.onceflux.benchmarks.variant;

import io.onceflux.benchmarks.scenario.Site;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Statement;

/** A statement of a test. */
final class Sql {

    private Sql() {}

    static void run(Site site, String sql) {
        try (Connection connection = DriverManager.getConnection(site.jdbcUrl(), site.user(), site.password());
                Statement statement = connection.createStatement()) {
            statement.execute(sql);
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }
}
