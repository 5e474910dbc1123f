package io.onceflux.services;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.testcontainers.postgresql.PostgreSQLContainer;

/** A PostgreSQL that answers: where it came from, its address, and what can be done to it. */
record PostgresSource(String origin, PostgresAddress address, ServerControl control) {
    private static final String IMAGE = "postgres:17.5";
    private static final Map<String, String> DEFAULTS =
            Map.of("max_connections", "200", "fsync", "on", "synchronous_commit", "on", "full_page_writes", "on");

    static PostgresSource of(ServiceChoice choice, Map<String, String> settings) {
        return switch (choice.decide()) {
            case ENV -> atAddress(choice, settings);
            case DOCKER -> inContainer(withDefaults(settings));
            case AUTO, LOCAL -> embedded(withDefaults(settings));
        };
    }

    private static PostgresSource atAddress(ServiceChoice choice, Map<String, String> settings) {
        choice.refuseSettings(settings);
        String variable = choice.addressVariable();
        PostgresAddress address = PostgresAddress.parse(choice.address());
        try {
            PostgresAdmin.run(address.r2dbcUrl(address.database()), "SELECT '1'");
        } catch (RuntimeException e) {
            throw new IllegalStateException(
                    "%s is set, but no PostgreSQL lets us in at %s: start it, correct the address or unset it."
                            .formatted(variable, address),
                    e);
        }
        return new PostgresSource("of " + variable, address, new ForeignServer(choice.server(), variable));
    }

    // The service keeps the container until it is closed; Testcontainers removes it when the JVM ends.
    @SuppressWarnings("resource")
    private static PostgresSource inContainer(Map<String, String> settings) {
        List<String> command = new ArrayList<>(List.of("postgres"));
        settings.forEach((name, value) -> command.addAll(List.of("-c", name + "=" + value)));
        PostgreSQLContainer container = new PostgreSQLContainer(IMAGE).withCommand(command.toArray(String[]::new));
        PostgresAddress address = new PostgresAddress(
                ContainerServer.host(),
                FreePorts.next(),
                container.getUsername(),
                container.getPassword(),
                container.getDatabaseName(),
                "");
        String url = address.r2dbcUrl(address.database());
        ServerControl control = ContainerServer.start(
                container, address.port(), PostgreSQLContainer.POSTGRESQL_PORT, () -> PostgresAdmin.answers(url));
        return new PostgresSource("in Docker", address, control);
    }

    private static PostgresSource embedded(Map<String, String> settings) {
        int port = FreePorts.next();
        ServerControl control = EmbeddedPostgresServer.start(port, settings);
        return new PostgresSource(
                "embedded",
                new PostgresAddress(EmbeddedPostgresServer.HOST, port, "postgres", "postgres", "postgres", ""),
                control);
    }

    private static Map<String, String> withDefaults(Map<String, String> settings) {
        Map<String, String> all = new HashMap<>(DEFAULTS);
        all.putAll(settings);
        return all;
    }

    /** The line that says what was chosen, from what the server itself answers. */
    String describe() {
        return "PostgreSQL: %s %s on %s:%d (fsync %s)"
                .formatted(
                        origin,
                        ask("split_part(current_setting('server_version'), ' ', 1)"),
                        address.host(),
                        address.port(),
                        ask("current_setting('fsync')"));
    }

    private String ask(String expression) {
        return PostgresAdmin.run(address.r2dbcUrl(address.database()), "SELECT " + expression)
                .get(0);
    }

    boolean isForeign() {
        return control instanceof ForeignServer;
    }
}
