package io.onceflux.rabbit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.rabbitmq.client.ConnectionFactory;
import io.onceflux.Database;
import io.onceflux.InvalidSetupException;
import io.onceflux.Order;
import io.onceflux.services.PostgresService;
import io.onceflux.services.RabbitService;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.postgresql.PostgresqlConnectionConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import io.r2dbc.postgresql.client.SSLMode;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.util.Map;
import javax.net.ssl.SSLContext;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.publisher.Mono;

/** Both servers over TLS, with a certificate of their own that the clients have to be told of. */
class TlsTest {

    @TempDir
    Path folder;

    private final SSLContext trustedByTheJvm = defaultContext();

    @AfterEach
    void restore() {
        SSLContext.setDefault(trustedByTheJvm);
    }

    @Test
    void messagesThatComeOverTlsAreAppliedOnceOverTlsAndOnlyFromAServerThatIsTrusted() throws Exception {
        TestCertificate certificate = TestCertificate.in(folder);
        String trusted = certificate.certificateFile().toString();
        int port = freePort();
        try (PostgresService postgres = PostgresService.start(Map.of("ssl_min_protocol_version", "TLSv1.2"));
                RabbitService rabbit = RabbitService.start(Map.of(
                        "listeners.ssl.1",
                        "127.0.0.1:" + port,
                        "ssl_options.certfile",
                        trusted,
                        "ssl_options.keyfile",
                        certificate.keyFile().toString()));
                Database database = Database.on(postgres);
                Broker broker = Broker.on(rabbit)) {
            switchTlsOn(database, certificate);
            assertRefused(overTls(database, "localhost"), "certification path");
            assertRefused(overTls(database, "127.0.0.1").sslRootCert(trusted), "127.0.0.1 found");
            ConnectionPool pool =
                    database.pool(6, overTls(database, "localhost").sslRootCert(trusted));
            broker.declare();
            broker.publish("order-1", "order-2", "order-1");

            assertRefused(byUri(broker, "localhost", port), pool, "certification path");
            SSLContext.setDefault(certificate.trustedAlone());
            assertRefused(byUri(broker, "127.0.0.1", port), pool, "127.0.0.1 found");
            SSLContext.setDefault(trustedByTheJvm);
            assertThat(database.effects()).isZero();

            ConnectionFactory factory = broker.factory();
            factory.setHost("localhost");
            factory.setPort(port);
            factory.useSslProtocol(certificate.trustedAlone());
            factory.enableHostnameVerification();
            RabbitOptions options = broker.options().connectionFactory(factory).build();
            try (Running running =
                    Running.start(options, pool, (order, db) -> requireTls(db).then(order.apply(db)))) {
                await().until(() -> running.outcomes.size() == 3);
                broker.awaitNoBacklog();
                assertThat(rabbit.ctl("-q", "list_connections", "ssl"))
                        .as("connections of the consumer")
                        .contains("true")
                        .doesNotContain("false");
                running.stop();
            }
            SSLContext.setDefault(certificate.trustedAlone());
            broker.publish("order-3");
            try (Running running = Running.start(byUri(broker, "localhost", port), pool, Order::apply)) {
                await().until(() -> running.outcomes.size() == 1);
                broker.awaitNoBacklog();
                running.stop();
            }
            database.assertAppliedOnce(3);
            assertThat(broker.deadLetters()).isEmpty();
        }
    }

    private static PostgresqlConnectionConfiguration.Builder overTls(Database database, String host) {
        return database.configuration().host(host).sslMode(SSLMode.VERIFY_FULL);
    }

    private static void assertRefused(PostgresqlConnectionConfiguration.Builder configuration, String because) {
        assertThatThrownBy(() -> new PostgresqlConnectionFactory(configuration.build())
                        .create()
                        .block(Duration.ofSeconds(10)))
                .hasStackTraceContaining(because);
    }

    private static RabbitOptions byUri(Broker broker, String host, int port) {
        return broker.options()
                .uri("amqps://guest:guest@" + host + ":" + port)
                .startLimit(Duration.ofSeconds(1))
                .build();
    }

    private static void assertRefused(RabbitOptions options, ConnectionPool pool, String because) {
        try (Running running = Running.start(options, pool, Order::apply)) {
            await().atMost(Duration.ofSeconds(20)).until(() -> running.error.get() != null);
            assertThat(running.error.get())
                    .isInstanceOf(InvalidSetupException.class)
                    .hasMessageContaining(because);
        }
    }

    private static SSLContext defaultContext() {
        try {
            return SSLContext.getDefault();
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }

    private static Mono<Void> requireTls(DatabaseClient db) {
        return db.sql("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
                .mapValue(Boolean.class)
                .one()
                .filter(ssl -> ssl)
                .switchIfEmpty(Mono.error(() -> new IllegalStateException("this session is not encrypted")))
                .then();
    }

    /** By SQL, so that it is the same wherever the server runs. Its key must be readable by itself alone. */
    private static void switchTlsOn(Database database, TestCertificate certificate) throws Exception {
        write(database, "server.crt", certificate.certificate());
        write(database, "server.key", certificate.key());
        database.run("ALTER SYSTEM SET ssl = on");
        database.run("SELECT pg_reload_conf()");
        await().until(() -> database.texts("SHOW ssl").contains("on"));
    }

    private static void write(Database database, String file, String pem) {
        database.run("COPY (SELECT unnest(string_to_array('%s', E'\\n'))) TO PROGRAM 'umask 077; cat > %s'"
                .formatted(pem.strip(), file));
    }

    private static int freePort() throws Exception {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }
}
