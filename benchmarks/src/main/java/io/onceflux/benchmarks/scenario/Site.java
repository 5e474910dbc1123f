package io.onceflux.benchmarks.scenario;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.net.URLEncoder;

/** Where one case works: a database, and a queue or topic, of its own. */
public record Site(
        String host, int port, String user, String password, String database, String rabbitUri, String kafkaBootstrap) {

    public String jdbcUrl() {
        return "jdbc:postgresql://%s:%d/%s".formatted(host, port, database);
    }

    public String r2dbcUrl() {
        return "r2dbc:postgresql://%s:%s@%s:%d/%s".formatted(encoded(user), encoded(password), host, port, database);
    }

    public String queue() {
        return database;
    }

    public String topic() {
        return database;
    }

    /** Without the password. */
    @Override
    public String toString() {
        return "Site[" + host + ":" + port + "/" + database + "]";
    }

    private static String encoded(String part) {
        return URLEncoder.encode(part, UTF_8).replace("+", "%20");
    }
}
