package io.onceflux.benchmarks;

import io.onceflux.benchmarks.scenario.Site;
import io.onceflux.services.PostgresService;
import io.onceflux.services.RabbitService;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** The real servers, each started when it is first needed, from where the tests have them too. */
final class Servers implements AutoCloseable {

    /** What anybody would set who wants a PostgreSQL to be measured; durability is as by default, full. */
    private static final Map<String, String> SETTINGS =
            Map.of("shared_buffers", "512MB", "max_wal_size", "4GB", "checkpoint_timeout", "30min");

    private @Nullable PostgresService postgres;
    private @Nullable RabbitService rabbit;

    /** A database of its own, and the broker if one was started. */
    Site newSite() {
        PostgresService server = postgres();
        return new Site(
                server.host(),
                server.port(),
                server.user(),
                server.password(),
                server.newDatabase(),
                rabbit == null ? "" : rabbit.uri());
    }

    /** A place for what needs no server. */
    static Site nowhere() {
        return new Site("", 0, "", "", "", "");
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

    /** What was started, for the report. */
    Map<String, Optional<String>> descriptions() {
        return Map.of(
                "PostgreSQL", Optional.ofNullable(postgres).map(Object::toString),
                "RabbitMQ", Optional.ofNullable(rabbit).map(Object::toString));
    }

    private static boolean isGivenByAddress() {
        String address = System.getenv("ONCEFLUX_POSTGRES_URL");
        String mode = System.getenv().getOrDefault("ONCEFLUX_SERVICES", "auto");
        return address != null && !address.isBlank() && !mode.equals("local") && !mode.equals("docker");
    }

    @Override
    public void close() {
        if (rabbit != null) {
            rabbit.close();
        }
        if (postgres != null) {
            postgres.close();
        }
    }
}
