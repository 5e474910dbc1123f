package io.onceflux.services;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URISyntaxException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * A real Kafka of one node, broker and controller, from Apache's own Maven artifacts: in a JVM of its own, on loopback, in a
 * folder that goes with this JVM. The build writes the broker's class path to a file, so that no module has it on its own.
 */
final class LocalKafkaBroker implements ServerControl {
    static final String HOST = "127.0.0.1";
    private static final String CLASS_PATH_FILE = "kafka-broker.classpath";
    private static final String CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg";
    private static final String LOG = "broker.log";
    private static final String PID_FILE = "broker.pid";
    private static final Duration START_LIMIT = Duration.ofSeconds(60);
    private static final Duration STOP_LIMIT = Duration.ofSeconds(40);

    /** Of the topics that the broker keeps for itself: one node can hold one copy, and one partition starts faster than fifty. */
    private static final List<String> ONE_OF_EACH = List.of(
            "offsets.topic.num.partitions",
            "offsets.topic.replication.factor",
            "transaction.state.log.num.partitions",
            "transaction.state.log.replication.factor",
            "transaction.state.log.min.isr",
            "share.coordinator.state.topic.num.partitions",
            "share.coordinator.state.topic.replication.factor",
            "share.coordinator.state.topic.min.isr");

    private final ThrowAwayFolder folder;
    private final int port;
    private @Nullable Process running;

    private LocalKafkaBroker(ThrowAwayFolder folder, int port, Map<String, String> settings) {
        this.folder = folder;
        this.port = port;
        folder.write("server.properties", properties(folder.path(), port, settings));
    }

    static LocalKafkaBroker start(int port, Map<String, String> settings) {
        LocalKafkaBroker broker = new LocalKafkaBroker(ThrowAwayFolder.create("kafka"), port, settings);
        try {
            broker.restart();
            return broker;
        } catch (RuntimeException e) {
            broker.close();
            throw e;
        }
    }

    /** The address that always lets in, whatever is asked for of other listeners. */
    String bootstrap() {
        return HOST + ":" + port;
    }

    private static String properties(Path folder, int port, Map<String, String> settings) {
        int controller = FreePorts.next();
        Map<String, String> all = new TreeMap<>();
        all.put("process.roles", "broker,controller");
        all.put("node.id", "1");
        all.put("controller.quorum.voters", "1@" + HOST + ":" + controller);
        all.put("controller.listener.names", "CONTROLLER");
        all.put("listeners", "PLAINTEXT://" + HOST + ":" + port + ",CONTROLLER://" + HOST + ":" + controller);
        all.put("advertised.listeners", "PLAINTEXT://" + HOST + ":" + port);
        all.put("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT");
        all.put("log.dirs", folder.resolve("data").toString());
        ONE_OF_EACH.forEach(name -> all.put(name, "1"));
        // A broker that was killed is let in again once its old session has ended.
        all.put("broker.session.timeout.ms", "2000");
        all.put("broker.heartbeat.interval.ms", "500");
        all.put("group.initial.rebalance.delay.ms", "0");
        // So that tests need not wait for the half minute and more that are usual.
        all.put("group.min.session.timeout.ms", "1000");
        all.put("group.consumer.min.session.timeout.ms", "1000");
        all.put("group.consumer.session.timeout.ms", "6000");
        all.put("group.consumer.min.heartbeat.interval.ms", "100");
        all.put("group.consumer.heartbeat.interval.ms", "500");
        all.put("auto.create.topics.enable", "false");
        all.put("log.cleaner.dedupe.buffer.size", "2097152");
        all.put("log.cleaner.backoff.ms", "500");
        all.put("num.network.threads", "2");
        all.put("num.io.threads", "2");
        all.put("background.threads", "2");
        settings.forEach((name, value) -> all.put(
                name,
                value.replace("{port}", Integer.toString(port)).replace("{controller}", HOST + ":" + controller)));
        return all.entrySet().stream()
                .map(line -> line.getKey() + "=" + line.getValue() + "\n")
                .collect(Collectors.joining());
    }

    @Override
    public void restart() {
        if (running != null) {
            throw new IllegalStateException("The local Kafka still runs: kill or stop it first.");
        }
        Process broker = launch();
        folder.write(PID_FILE, broker.pid() + "\n");
        running = broker;
        boolean up = Waiting.holdsWithin(START_LIMIT, () -> !broker.isAlive() || KafkaAddress.answers(bootstrap()));
        if (!up || !broker.isAlive()) {
            throw new IllegalStateException("The local Kafka did not start: " + folder.tail(LOG));
        }
    }

    private Process launch() {
        ProcessBuilder builder = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-Xmx256m",
                        "-XX:+UseSerialGC",
                        "-XX:TieredStopAtLevel=1",
                        "-Xshare:auto",
                        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
                        KafkaBrokerMain.class.getName(),
                        folder.path().resolve("server.properties").toString(),
                        CLUSTER)
                .directory(folder.path().toFile())
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.appendTo(
                        folder.path().resolve(LOG).toFile()));
        builder.environment().put("CLASSPATH", ownClasses() + File.pathSeparator + brokerClassPath());
        try {
            return builder.start();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static String brokerClassPath() {
        try (InputStream file = LocalKafkaBroker.class.getResourceAsStream(CLASS_PATH_FILE)) {
            if (file == null) {
                throw new IllegalStateException(
                        "No Kafka here: build core with Maven (process-test-resources), which fetches"
                                + " one, or start Docker, or set " + KafkaService.BOOTSTRAP_VARIABLE + " to "
                                + KafkaAddress.EXAMPLE + ".");
            }
            return new String(file.readAllBytes(), UTF_8).strip();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Where {@link KafkaBrokerMain} is: a folder or a jar. */
    private static String ownClasses() {
        try {
            return Path.of(KafkaBrokerMain.class
                            .getProtectionDomain()
                            .getCodeSource()
                            .getLocation()
                            .toURI())
                    .toString();
        } catch (URISyntaxException e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public void kill() {
        OsProcesses.kill(broker().pid());
        gone();
    }

    @Override
    public void stop() {
        Process broker = broker();
        thaw();
        OsProcesses.terminate(broker.pid());
        try {
            if (!broker.waitFor(STOP_LIMIT.toMillis(), TimeUnit.MILLISECONDS)) {
                throw new IllegalStateException("The local Kafka did not stop: " + folder.tail(LOG));
            }
        } catch (InterruptedException e) {
            throw Waiting.interrupted(e);
        }
        gone();
    }

    @Override
    public void freeze() {
        OsProcesses.freeze(broker().pid());
    }

    @Override
    public void thaw() {
        OsProcesses.thaw(broker().pid());
    }

    @Override
    public void close() {
        folder.close();
    }

    private Process broker() {
        if (running == null) {
            throw new IllegalStateException("The local Kafka is not running.");
        }
        return running;
    }

    private void gone() {
        running = null;
        folder.delete(PID_FILE);
    }
}
