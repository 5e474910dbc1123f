package io.onceflux.rabbit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.rabbitmq.client.ConnectionFactory;
import io.onceflux.Database;
import io.onceflux.InvalidSetupException;
import io.onceflux.Order;
import io.onceflux.services.PostgresService;
import io.onceflux.services.RabbitService;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.postgresql.client.SSLMode;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import javax.net.ssl.SSLContext;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.publisher.Mono;

/** Both servers over TLS, with a certificate of their own that the clients have to be told of. */
class TlsTest {

    @TempDir
    Path folder;

    @Test
    void aMessageThatComesOverTlsIsAppliedOnceOverTls() throws Exception {
        TestCertificate certificate = TestCertificate.in(folder);
        int tlsPort = freePort();
        try (PostgresService postgres = PostgresService.start(Map.of("ssl_min_protocol_version", "TLSv1.2"));
                RabbitService rabbit = RabbitService.start(Map.of(
                        "listeners.ssl.1", "127.0.0.1:" + tlsPort,
                        "ssl_options.certfile", certificate.certificateFile().toString(),
                        "ssl_options.keyfile", certificate.keyFile().toString()));
                Database database = Database.on(postgres);
                Broker broker = Broker.on(rabbit)) {
            switchTlsOn(database, certificate);
            ConnectionPool pool = database.pool(
                    6,
                    database.configuration()
                            .sslMode(SSLMode.VERIFY_CA)
                            .sslRootCert(certificate.certificateFile().toString()));
            broker.declare();
            broker.publish("order-1", "order-2", "order-1");

            try (Running distrusting =
                    Running.start(options(broker, tlsPort, SSLContext.getDefault()), pool, Order::apply)) {
                await().atMost(Duration.ofSeconds(20)).until(() -> distrusting.error.get() != null);
                assertThat(distrusting.error.get()).isInstanceOf(InvalidSetupException.class);
            }
            assertThat(database.effects()).isZero();

            try (Running running = Running.start(
                    options(broker, tlsPort, certificate.trustedAlone()),
                    pool,
                    (order, db) -> requireTls(db).then(order.apply(db)))) {
                await().until(() -> running.outcomes.size() == 3);
                broker.awaitNoBacklog();
                assertThat(rabbit.ctl("-q", "list_connections", "ssl", "state"))
                        .as("connections of the consumer")
                        .contains("true")
                        .doesNotContain("false");
                running.stop();
            }
            database.assertAppliedOnce(2);
            assertThat(broker.deadLetters()).isEmpty();
        }
    }

    private static RabbitOptions options(Broker broker, int tlsPort, SSLContext trusted) {
        ConnectionFactory factory = broker.factory();
        factory.setPort(tlsPort);
        factory.useSslProtocol(trusted);
        factory.enableHostnameVerification();
        return broker.options()
                .connectionFactory(factory)
                .startLimit(Duration.ofSeconds(2))
                .build();
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
