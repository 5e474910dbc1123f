package io.onceflux.examples.demo;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.stream.Stream;
import org.apache.qpid.server.SystemLauncher;

/**
 * An AMQP 0-9-1 broker in this JVM (Apache Qpid Broker-J), for machines without a RabbitMQ.
 *
 * <p>It keeps messages in memory, listens on loopback only, and takes only this run's password. It does what the demo needs;
 * it has no {@code basic.return} for confirmed messages and no quorum queues.
 */
final class EmbeddedAmqpBroker implements AutoCloseable {

    private static final String CONFIG = """
            {
              "name": "embedded", "modelVersion": "9.0",
              "authenticationproviders": [{
                "name": "plain", "type": "Plain", "secureOnlyMechanisms": [],
                "users": [{"name": "demo", "type": "managed", "password": "%1$s"}]
              }],
              "ports": [{
                "name": "AMQP", "type": "AMQP", "bindingAddress": "127.0.0.1", "port": %2$d,
                "protocols": ["AMQP_0_9_1"], "authenticationProvider": "plain",
                "virtualhostaliases": [{"name": "default", "type": "defaultAlias"}]
              }],
              "virtualhostnodes": [{
                "name": "default", "type": "Memory", "defaultVirtualHostNode": true,
                "virtualHostInitialConfiguration": "{\\"type\\": \\"Memory\\"}"
              }]
            }
            """;

    private final SystemLauncher launcher = new SystemLauncher();
    private final Path folder;
    private final String uri;

    private EmbeddedAmqpBroker(Path folder, String uri) {
        this.folder = folder;
        this.uri = uri;
    }

    /** Says on stdout that it is used, and why. */
    static EmbeddedAmqpBroker start(String why) throws Exception {
        int port = freePort();
        String password = UUID.randomUUID().toString();
        Path folder = Files.createTempDirectory("onceflux-amqp-");
        Runtime.getRuntime().addShutdownHook(new Thread(() -> delete(folder), "onceflux-amqp-delete"));
        EmbeddedAmqpBroker broker =
                new EmbeddedAmqpBroker(folder, "amqp://demo:%s@127.0.0.1:%d".formatted(password, port));
        try {
            broker.launch(CONFIG.formatted(password, port));
        } catch (Exception e) {
            broker.close();
            throw e;
        }
        System.out.println(
                "RabbitMQ: %s, so an AMQP broker in this process stands in for it (Apache Qpid) on 127.0.0.1:%d"
                        .formatted(why, port));
        return broker;
    }

    private void launch(String config) throws Exception {
        Path file = Files.writeString(folder.resolve("broker.json"), config);
        // RabbitMQ's own arguments of a queue, such as x-dead-letter-exchange, are let pass.
        for (String thing : List.of("queue", "exchange")) {
            System.setProperty(thing + ".behaviourOnUnknownDeclareArgument", "IGNORE");
        }
        launcher.startup(Map.of(
                "type",
                "Memory",
                "initialConfigurationLocation",
                file.toUri().toString(),
                "startupLoggedToSystemOut",
                false,
                "qpid.work_dir",
                folder.toString()));
    }

    String uri() {
        return uri;
    }

    @Override
    public void close() {
        launcher.shutdown();
    }

    private static void delete(Path folder) {
        try (Stream<Path> files = Files.walk(folder)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.deleteIfExists(file);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }
}
