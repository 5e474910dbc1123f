package io.onceflux.services;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.testcontainers.images.builder.Transferable;
import org.testcontainers.rabbitmq.RabbitMQContainer;

/** A RabbitMQ that answers: where it came from, its address, what can be done to it, and its command line tool. */
record RabbitSource(String origin, URI uri, ServerControl control, Ctl ctl) {
    private static final String IMAGE = "rabbitmq:4.1";
    private static final int AMQP = 5672;
    private static final String LOOPBACK = "127.0.0.1:";
    private static final int READABLE_BY_ALL = 0644;

    /** {@code rabbitmqctl}: arguments in, stdout back. */
    interface Ctl {
        String run(List<String> args);
    }

    /** Empty only when it would have to be a local server and none is installed. */
    static Optional<RabbitSource> of(ServiceChoice choice, Map<String, String> conf) {
        return switch (choice.decide()) {
            case ENV -> Optional.of(atAddress(choice, conf));
            case DOCKER -> Optional.of(inContainer(conf));
            case AUTO, LOCAL -> RabbitInstallation.find(choice.env()).map(found -> local(found, conf));
        };
    }

    private static RabbitSource atAddress(ServiceChoice choice, Map<String, String> conf) {
        choice.refuseSettings(conf);
        URI uri = AmqpAddress.parse(choice.address());
        if (!AmqpAddress.answers(uri)) {
            throw new IllegalStateException(
                    "%s is set, but no RabbitMQ answers at %s:%d: start it, correct the address or unset it."
                            .formatted(choice.addressVariable(), uri.getHost(), AmqpAddress.port(uri)));
        }
        ForeignServer server = new ForeignServer(choice.server(), choice.addressVariable());
        return new RabbitSource("of " + choice.addressVariable(), uri, server, args -> {
            throw server.refusal("administered");
        });
    }

    // The service keeps the container until it is closed; Testcontainers removes it when the JVM ends.
    @SuppressWarnings("resource")
    private static RabbitSource inContainer(Map<String, String> conf) {
        String lines = conf.entrySet().stream()
                .map(line -> line.getKey() + " = " + line.getValue().replace(LOOPBACK, "0.0.0.0:") + "\n")
                .collect(Collectors.joining());
        RabbitMQContainer container = new RabbitMQContainer(IMAGE);
        container.withCopyToContainer(Transferable.of(lines), "/etc/rabbitmq/conf.d/90-onceflux.conf");
        URI uri = AmqpAddress.ofGuest(ContainerServer.host(), FreePorts.next());
        Map<Integer, Integer> ports = new HashMap<>(Map.of(uri.getPort(), AMQP));
        for (String value : conf.values()) {
            if (value.startsWith(LOOPBACK)) {
                int port = Integer.parseInt(value.substring(LOOPBACK.length()));
                ports.put(port, port);
            } else if (value.startsWith("/")) {
                container.withCopyToContainer(Transferable.of(contentOf(value), READABLE_BY_ALL), value);
            }
        }
        ContainerServer server = ContainerServer.start(container, ports, () -> AmqpAddress.answers(uri));
        return new RabbitSource(
                "in Docker " + IMAGE,
                uri,
                server,
                args -> server.run(
                        Stream.concat(Stream.of("rabbitmqctl"), args.stream()).toArray(String[]::new)));
    }

    private static byte[] contentOf(String file) {
        try {
            return Files.readAllBytes(Path.of(file));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static RabbitSource local(RabbitInstallation installation, Map<String, String> conf) {
        LocalRabbitNode node = LocalRabbitNode.start(installation, conf);
        return new RabbitSource("local " + installation.sbin(), node.uri(), node, node::ctl);
    }
}
