package io.onceflux.rabbit;

import static org.assertj.core.api.Assertions.assertThat;

import io.onceflux.Database;
import io.onceflux.services.ForkedJvm;
import io.onceflux.services.PostgresService;
import io.onceflux.services.RabbitService;
import java.net.URI;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Passwords are in nothing that a person may see: no log line, no exception, no text of an object, no health. */
class SecretsTest {

    private final PostgresService postgres = PostgresService.start(Map.of("password_encryption", "scram-sha-256"));
    private final Database database = Database.on(postgres);
    private final Broker broker = Broker.create();

    @AfterEach
    void close() {
        broker.close();
        database.close();
        postgres.close();
    }

    /** Otherwise a server for tests asks nobody for a password. */
    private void requirePassword() {
        database.run("CREATE ROLE nobody LOGIN PASSWORD 'another'");
        database.run("""
                COPY (VALUES ('host all nobody all scram-sha-256'), ('host all all all trust'), ('local all all trust'))
                TO PROGRAM 'cat > pg_hba.conf'""");
        database.run("SELECT pg_reload_conf()");
    }

    @Test
    void noPasswordIsLoggedOrToldWhateverFails() {
        broker.declare();
        requirePassword();
        URI rabbit = URI.create(RabbitService.shared().uri());
        try (ForkedJvm service = ForkedJvm.start(
                TellingService.class,
                Map.of(
                        "org.slf4j.simpleLogger.logFile", "System.out",
                        "org.slf4j.simpleLogger.defaultLogLevel", "info",
                        "org.slf4j.simpleLogger.log.io.onceflux", "trace"),
                rabbit.getHost(),
                Integer.toString(rabbit.getPort()),
                broker.queue(),
                database.r2dbcUrl())) {
            service.awaitLine(line -> line.equals("END"), Duration.ofMinutes(2));
            List<String> told = service.lines();

            assertThat(told)
                    .as("what is to be seen: the failures, and who was refused")
                    .anyMatch(line -> line.contains("refuses the login"))
                    .anyMatch(line -> line.contains("uri must be like"))
                    .anyMatch(line -> line.contains("28P01"))
                    .anyMatch(line -> line.contains("could not be reached"));
            assertThat(told).noneMatch(line -> line.contains(TellingService.SECRET));
        }
    }
}
