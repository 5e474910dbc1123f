package io.onceflux.services;

import java.net.URI;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A real RabbitMQ for tests and for the demo.
 *
 * <p>It comes from the first of these that is there:
 *
 * <ol>
 *   <li>the address in {@code ONCEFLUX_RABBIT_URI}, {@code amqp://user:password@host:port/vhost}. If nothing answers there,
 *       that is a failure: nothing else is tried.
 *   <li>a container, where a Docker engine answers
 *   <li>an installed {@code rabbitmq-server}, found by {@code RABBITMQ_HOME}, the {@code PATH} and the usual folders, started
 *       as a throw-away node of its own on loopback; a node that the machine runs as a service is not touched
 * </ol>
 *
 * <p>{@code ONCEFLUX_SERVICES} set to {@code env}, {@code docker} or {@code local} forces one of them; {@code auto} is the
 * order above. A choice that cannot be had fails with an {@link IllegalStateException} that says how to get it. What was
 * chosen is printed as one line on stdout.
 *
 * <p>Containers and local nodes, with their data, end with this JVM, however it ends. To be used by one thread at a time,
 * except for the address.
 */
public final class RabbitService extends ControlledService {
    static final String URI_VARIABLE = "ONCEFLUX_RABBIT_URI";
    private static @Nullable RabbitService shared;

    private final URI uri;
    private final RabbitSource.Ctl ctl;
    private final String description;

    private RabbitService(RabbitSource source) {
        super(source.control());
        this.uri = source.uri();
        this.ctl = source.ctl();
        this.description = "RabbitMQ: %s on %s:%d".formatted(source.origin(), host(), port());
    }

    public static RabbitService start() {
        return start(Map.of());
    }

    /**
     * Starts a server with these lines of {@code rabbitmq.conf} on top, for example {@code consumer_timeout} in
     * milliseconds; refused for a server given by address. A value {@code 127.0.0.1:port} is a further listener, and one that
     * begins with a slash is a file of this machine.
     */
    public static RabbitService start(Map<String, String> conf) {
        return start(System.getenv(), ContainerServer::dockerAnswers, conf);
    }

    /** As {@link #start()}, but empty where there is no address, no Docker and no installed server. */
    public static Optional<RabbitService> startIfPresent() {
        return startIfPresent(System.getenv(), ContainerServer::dockerAnswers, Map.of());
    }

    /** The one server of this JVM for tests that keep to their own queues; started when first asked for. */
    public static synchronized RabbitService shared() {
        if (shared == null) {
            RabbitService started = start();
            Runtime.getRuntime().addShutdownHook(new Thread(started::close, "onceflux-rabbit-close"));
            shared = started;
        }
        return shared;
    }

    static RabbitService start(Map<String, String> env, BooleanSupplier docker, Map<String, String> conf) {
        return startIfPresent(env, docker, conf)
                .orElseThrow(() -> new IllegalStateException(
                        "No RabbitMQ here: run dev/test, which installs one on Debian and Ubuntu, or install rabbitmq-server,"
                                + " or start Docker, or set " + URI_VARIABLE + " to " + AmqpAddress.EXAMPLE + "."));
    }

    static Optional<RabbitService> startIfPresent(
            Map<String, String> env, BooleanSupplier docker, Map<String, String> conf) {
        ServiceChoice choice = new ServiceChoice("RabbitMQ", URI_VARIABLE, AmqpAddress.EXAMPLE, env, docker);
        Optional<RabbitService> service = RabbitSource.of(choice, conf).map(RabbitService::new);
        service.ifPresent(System.out::println);
        return service;
    }

    /** With user and password. */
    public String uri() {
        return uri.toString();
    }

    public String host() {
        return uri.getHost();
    }

    public int port() {
        return AmqpAddress.port(uri);
    }

    /**
     * Runs {@code rabbitmqctl} on the node and returns what it prints on stdout.
     *
     * @throws UnsupportedOperationException if the server was given by its address
     */
    public String ctl(String... args) {
        return ctl.run(List.of(args));
    }

    /** The line that was printed at the start. */
    @Override
    public String toString() {
        return description;
    }
}
