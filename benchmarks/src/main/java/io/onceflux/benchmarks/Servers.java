package io.onceflux.benchmarks;

import com.rabbitmq.client.ConnectionFactory;
import io.onceflux.benchmarks.scenario.Site;
import io.onceflux.services.KafkaService;
import io.onceflux.services.PostgresService;
import io.onceflux.services.RabbitService;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.common.utils.AppInfoParser;
import org.jspecify.annotations.Nullable;

/** The real servers, each started when it is first needed, from where the tests have them too. */
final class Servers implements AutoCloseable {

    /** What anybody would set who wants a PostgreSQL to be measured; durability is as by default, full. */
    private static final Map<String, String> SETTINGS =
            Map.of("shared_buffers", "512MB", "max_wal_size", "4GB", "checkpoint_timeout", "30min");

    private @Nullable PostgresService postgres;
    private @Nullable RabbitService rabbit;
    private @Nullable KafkaService kafka;

    /** A database of its own, and the broker if one was started. */
    Site newSite() {
        PostgresService server = postgres();
        return new Site(
                server.host(),
                server.port(),
                server.user(),
                server.password(),
                server.newDatabase(),
                rabbit == null ? "" : rabbit.uri(),
                kafka == null ? "" : kafka.bootstrap());
    }

    /** A place for what needs no server. */
    static Site nowhere() {
        return new Site("", 0, "", "", "", "", "");
    }

    PostgresService postgres() {
        PostgresService started = postgres;
        if (started == null) {
            started = isGivenByAddress() ? PostgresService.start() : PostgresService.start(SETTINGS);
            postgres = started;
        }
        return started;
    }

    void startRabbit() {
        if (rabbit == null) {
            rabbit = RabbitService.start();
        }
    }

    void startKafka() {
        if (kafka == null) {
            kafka = KafkaService.start();
        }
    }

    /** Of what was started, with what PostgreSQL was told about memory and durability. */
    Map<String, String> versions() {
        Map<String, String> versions = new LinkedHashMap<>();
        PostgresService database = postgres;
        if (database != null) {
            putPostgres(versions, database);
        }
        RabbitService broker = rabbit;
        if (broker != null) {
            versions.put("RabbitMQ", rabbitVersion(broker));
        }
        if (kafka != null) {
            versions.put("Kafka", kafka + ", client " + AppInfoParser.getVersion());
        }
        return versions;
    }

    private static void putPostgres(Map<String, String> versions, PostgresService server) {
        String url = "jdbc:postgresql://%s:%d/%s".formatted(server.host(), server.port(), server.database());
        try (Connection connection = DriverManager.getConnection(url, server.user(), server.password());
                Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery("""
                        SELECT current_setting('server_version') || ', ' || string_agg(name || ' ' || current_setting(name), ', ')
                        FROM unnest(ARRAY['shared_buffers', 'max_wal_size', 'fsync', 'synchronous_commit']) AS names (name)
                        """)) {
            row.next();
            versions.put("PostgreSQL", row.getString(1));
            versions.put("PostgreSQL JDBC", connection.getMetaData().getDriverVersion());
        } catch (SQLException e) {
            throw new IllegalStateException("PostgreSQL does not say what it is", e);
        }
    }

    private static String rabbitVersion(RabbitService broker) {
        ConnectionFactory factory = new ConnectionFactory();
        try {
            factory.setUri(broker.uri());
            try (com.rabbitmq.client.Connection connection = factory.newConnection()) {
                return String.valueOf(connection.getServerProperties().get("version"));
            }
        } catch (Exception e) {
            throw new IllegalStateException("RabbitMQ does not say what it is", e);
        }
    }

    private static boolean isGivenByAddress() {
        String address = System.getenv("ONCEFLUX_POSTGRES_URL");
        String mode = System.getenv().getOrDefault("ONCEFLUX_SERVICES", "auto");
        return address != null && !address.isBlank() && !mode.equals("local") && !mode.equals("docker");
    }

    @Override
    public void close() {
        if (kafka != null) {
            kafka.close();
        }
        if (rabbit != null) {
            rabbit.close();
        }
        if (postgres != null) {
            postgres.close();
        }
    }
}
