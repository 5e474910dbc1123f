package io.onceflux.examples.demo;

import io.onceflux.services.ForkedJvm;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The running instances of one service, each a JVM of its own. */
final class Instances implements AutoCloseable {

    /** They live for seconds: what a JVM does to be fast later does not pay. */
    private static final List<String> SHORT_LIVED =
            List.of("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx256m");

    private final Contender contender;
    private final Map<String, String> settings;
    private final Deque<ForkedJvm> running = new ArrayDeque<>();

    Instances(Contender contender, Broker broker, String postgresUrl) {
        this.contender = contender;
        this.settings = new HashMap<>(broker.settings(contender));
        settings.put(contender.property("postgres.url"), postgresUrl);
    }

    void start() {
        running.addLast(ForkedJvm.start(contender.main(), SHORT_LIVED, settings));
    }

    int count() {
        return running.size();
    }

    /** SIGKILL for the oldest: no shutdown hook runs, no transaction ends, nothing is acknowledged any more. */
    void killOne() {
        running.removeFirst().close();
    }

    /** SIGTERM for all: each may finish what it has begun. */
    void stop() {
        running.forEach(ForkedJvm::terminate);
        while (!running.isEmpty()) {
            stopOne();
        }
    }

    /** SIGTERM for the oldest. */
    void stopOne() {
        try (ForkedJvm instance = running.removeFirst()) {
            instance.terminate();
            int unused = instance.exitCode();
        }
    }

    /** Fails, quoting its last output, if one has ended by itself. */
    void requireAlive() {
        for (ForkedJvm instance : running) {
            if (!instance.isAlive()) {
                throw new IllegalStateException("An instance of the %s service ended by itself. %s"
                        .formatted(contender.title(), lastOutput(instance)));
            }
        }
    }

    private static String lastOutput(ForkedJvm instance) {
        try {
            return instance.awaitLine(line -> false, Duration.ofSeconds(1));
        } catch (IllegalStateException saysIt) {
            return String.valueOf(saysIt.getMessage());
        }
    }

    @Override
    public void close() {
        running.forEach(ForkedJvm::close);
    }
}
