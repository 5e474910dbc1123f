package io.onceflux.services;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.awaitility.Awaitility.await;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

class PostgresServiceTest {
    private static final Map<String, String> LOCAL = Map.of("ONCEFLUX_SERVICES", "local");
    private static PostgresService postgres;

    @BeforeAll
    static void start() {
        postgres = PostgresService.start(LOCAL, () -> false, Map.of("lock_timeout", "1234"));
    }

    @AfterAll
    static void close() {
        postgres.close();
    }

    @Test
    void theEmbeddedServerIsDurableAndSaysWhereItIs() {
        assertThat(postgres).hasToString("PostgreSQL: embedded 17.5 on 127.0.0.1:" + postgres.port() + " (fsync on)");
        assertThat(setting("synchronous_commit")).isEqualTo("on");
        assertThat(setting("full_page_writes")).isEqualTo("on");
        assertThat(setting("max_connections")).isEqualTo("200");
        assertThat(setting("listen_addresses")).isEqualTo("127.0.0.1");
    }

    @Test
    void settingsReachTheServer() {
        assertThat(setting("lock_timeout")).isEqualTo("1234ms");
    }

    @Test
    void aServerThatWasKilledComesBackWithWhatItCommitted() {
        String url = postgres.r2dbcUrl(postgres.newDatabase());
        PostgresAdmin.run(url, "CREATE TABLE kept (id int PRIMARY KEY)");
        PostgresAdmin.run(url, "INSERT INTO kept SELECT generate_series(1, 1000)");

        postgres.kill();
        assertThat(PostgresAdmin.answers(url)).isFalse();
        postgres.restart();

        assertThat(PostgresAdmin.run(url, "SELECT count(*)::text FROM kept")).containsExactly("1000");
    }

    @Test
    void aServerThatWasStoppedComesBackOnItsPort() {
        String url = postgres.r2dbcUrl();
        postgres.stop();
        assertThat(PostgresAdmin.answers(url)).isFalse();
        postgres.restart();
        assertThat(PostgresAdmin.answers(url)).isTrue();
    }

    @Test
    void aFrozenServerStallsRunningSessionsUntilItThaws() {
        CompletableFuture<List<String>> session = CompletableFuture.supplyAsync(
                () -> PostgresAdmin.run(postgres.r2dbcUrl(), "SELECT 'done' FROM pg_sleep(1.5)"));
        await().until(() -> PostgresAdmin.run(
                                postgres.r2dbcUrl(),
                                "SELECT pid::text FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
                        .size()
                == 1);

        postgres.freeze();
        assertThat(PostgresAdmin.answers(postgres.r2dbcUrl()))
                .as("within the 2 s that this waits")
                .isFalse();
        assertThat(session).isNotDone();
        postgres.thaw();

        await().atMost(Duration.ofSeconds(10))
                .untilAsserted(() -> assertThat(session).isCompletedWithValue(List.of("done")));
    }

    @Test
    void aServerGivenByAddressIsUsedAndLeftRunning() {
        PostgresService given =
                PostgresService.start(Map.of("ONCEFLUX_POSTGRES_URL", postgres.r2dbcUrl()), () -> true, Map.of());
        String database = given.newDatabase();
        assertThat(PostgresAdmin.answers(given.r2dbcUrl(database))).isTrue();
        assertThatExceptionOfType(UnsupportedOperationException.class)
                .isThrownBy(given::kill)
                .withMessage(
                        "The PostgreSQL of ONCEFLUX_POSTGRES_URL cannot be killed from here: unset ONCEFLUX_POSTGRES_URL or set ONCEFLUX_SERVICES=local.");

        given.close();

        assertThat(PostgresAdmin.answers(postgres.r2dbcUrl())).isTrue();
        assertThat(PostgresAdmin.answers(postgres.r2dbcUrl(database)))
                .as("the database made on it is dropped")
                .isFalse();
    }

    @Test
    void anAddressWhereNothingAnswersIsAFailureAndNothingElseIsTried() {
        String url = "r2dbc:postgresql://me:s3cret@127.0.0.1:" + FreePorts.next() + "/db";
        assertThatIllegalStateException()
                .isThrownBy(() -> PostgresService.start(
                        Map.of("ONCEFLUX_POSTGRES_URL", url),
                        () -> {
                            throw new AssertionError("Docker was tried");
                        },
                        Map.of()))
                .withMessageMatching(
                        "ONCEFLUX_POSTGRES_URL is set, but no PostgreSQL lets us in at 127.0.0.1:\\d+/db as me: .*")
                .satisfies(failure -> assertThat(failure).hasStackTraceContaining("Connection refused"))
                .satisfies(failure ->
                        assertThat(stackTrace(failure)).as("the password").doesNotContain("s3cret"));
    }

    @Test
    void theServerIsGoneSoonAfterItsJvmWasKilled() {
        try (ForkedJvm owner = ForkedJvm.start(PostgresOwner.class)) {
            owner.awaitLine(line -> line.startsWith("PostgreSQL: embedded 17.5 on "), Duration.ofSeconds(30));
            String url = owner.awaitLine(line -> line.startsWith("r2dbc:"), Duration.ofSeconds(10));
            assertThat(PostgresAdmin.answers(url)).isTrue();
            Path data = Path.of(PostgresAdmin.run(url, "SHOW data_directory").get(0));
            assertThat(data).exists();

            owner.kill();

            await().atMost(Duration.ofSeconds(10)).until(() -> !PostgresAdmin.answers(url) && !Files.exists(data));
        }
    }

    static final class PostgresOwner {
        private PostgresOwner() {}

        public static void main(String[] args) throws InterruptedException {
            PostgresService service = PostgresService.start(LOCAL, () -> false, Map.of());
            System.out.println(service.r2dbcUrl());
            Thread.currentThread().join();
        }
    }

    private static String setting(String name) {
        return PostgresAdmin.run(postgres.r2dbcUrl(), "SHOW " + name).get(0);
    }

    private static String stackTrace(Throwable failure) {
        StringWriter text = new StringWriter();
        failure.printStackTrace(new PrintWriter(text));
        return text.toString();
    }
}
