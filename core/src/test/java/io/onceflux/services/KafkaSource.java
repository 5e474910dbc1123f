package io.onceflux.services;

import java.util.Locale;
import java.util.Map;
import org.testcontainers.kafka.KafkaContainer;

/** A Kafka that answers: where it came from, its address, and what can be done to it. */
record KafkaSource(String origin, String bootstrap, ServerControl control) {
    private static final String IMAGE = "apache/kafka:4.1.1";
    private static final int PORT = 9092;

    static KafkaSource of(ServiceChoice choice, Map<String, String> settings) {
        return switch (choice.decide()) {
            case ENV -> atAddress(choice, settings);
            case DOCKER -> inContainer(settings);
            case AUTO, LOCAL -> local(settings);
        };
    }

    private static KafkaSource atAddress(ServiceChoice choice, Map<String, String> settings) {
        choice.refuseSettings(settings);
        String bootstrap = choice.address();
        if (!KafkaAddress.answers(bootstrap)) {
            throw new IllegalStateException(
                    "%s is set, but no Kafka answers at %s: start it, correct the address or unset it."
                            .formatted(choice.addressVariable(), bootstrap));
        }
        return new KafkaSource(
                "of " + choice.addressVariable(),
                bootstrap,
                new ForeignServer(choice.server(), choice.addressVariable()));
    }

    // The service keeps the container until it is closed; Testcontainers removes it when the JVM ends.
    @SuppressWarnings("resource")
    private static KafkaSource inContainer(Map<String, String> settings) {
        KafkaContainer container = new KafkaContainer(IMAGE);
        settings.forEach((name, value) ->
                container.withEnv("KAFKA_" + name.toUpperCase(Locale.ROOT).replace('.', '_'), value));
        int port = FreePorts.next();
        String bootstrap = ContainerServer.host() + ":" + port;
        ServerControl control = ContainerServer.start(container, port, PORT, () -> KafkaAddress.answers(bootstrap));
        return new KafkaSource("in Docker " + IMAGE, bootstrap, control);
    }

    private static KafkaSource local(Map<String, String> settings) {
        LocalKafkaBroker broker = LocalKafkaBroker.start(FreePorts.next(), settings);
        return new KafkaSource("local", broker.bootstrap(), broker);
    }
}
