package io.onceflux.services;

import java.util.Map;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A real Kafka for tests.
 *
 * <p>It comes from the first of these that is there:
 *
 * <ol>
 *   <li>the address in {@code ONCEFLUX_KAFKA_BOOTSTRAP}, {@code host:port}. If nothing answers there, that is a failure: nothing
 *       else is tried.
 *   <li>a container, where a Docker engine answers
 *   <li>a broker from Apache's Maven artifacts, of one node, in a JVM of its own on loopback
 * </ol>
 *
 * <p>{@code ONCEFLUX_SERVICES} set to {@code env}, {@code docker} or {@code local} forces one of them; {@code auto} is the
 * order above. A choice that cannot be had fails with an {@link IllegalStateException} that says how to get it. What was
 * chosen is printed as one line on stdout.
 *
 * <p>Containers and local brokers, with their data, end with this JVM, however it ends. To be used by one thread at a time,
 * except for the address.
 */
public final class KafkaService extends ControlledService {
    static final String BOOTSTRAP_VARIABLE = "ONCEFLUX_KAFKA_BOOTSTRAP";
    private static @Nullable KafkaService shared;

    private final String bootstrap;
    private final String description;

    private KafkaService(KafkaSource source) {
        super(source.control());
        this.bootstrap = source.bootstrap();
        this.description = "Kafka: %s on %s".formatted(source.origin(), KafkaAddress.first(bootstrap));
    }

    public static KafkaService start() {
        return start(Map.of());
    }

    /**
     * Starts a broker with these settings of {@code server.properties} on top; refused for one given by address. In a value,
     * <code>{port}</code> is the broker's port, and <code>{controller}</code> the address of its controller.
     */
    public static KafkaService start(Map<String, String> settings) {
        return start(System.getenv(), ContainerServer::dockerAnswers, settings);
    }

    /** The one broker of this JVM for tests that keep to their own topics and groups; started when first asked for. */
    public static synchronized KafkaService shared() {
        if (shared == null) {
            KafkaService started = start();
            Runtime.getRuntime().addShutdownHook(new Thread(started::close, "onceflux-kafka-close"));
            shared = started;
        }
        return shared;
    }

    static KafkaService start(Map<String, String> env, BooleanSupplier docker, Map<String, String> settings) {
        ServiceChoice choice = new ServiceChoice("Kafka", BOOTSTRAP_VARIABLE, KafkaAddress.EXAMPLE, env, docker);
        KafkaService service = new KafkaService(KafkaSource.of(choice, settings));
        System.out.println(service);
        return service;
    }

    /** As Kafka's {@code bootstrap.servers} takes it. */
    public String bootstrap() {
        return bootstrap;
    }

    /** The line that was printed at the start. */
    @Override
    public String toString() {
        return description;
    }
}
