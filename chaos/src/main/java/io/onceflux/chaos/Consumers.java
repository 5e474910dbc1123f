package io.onceflux.chaos;

import io.onceflux.chaos.consumer.ChaosConsumer;
import io.onceflux.services.ForkedJvm;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.IntFunction;

/**
 * The consumers, each a JVM of its own, numbered from 1. One that is killed or ends is started again. Its log stays. Traps kill
 * on threads of their own, hence the locks.
 */
final class Consumers implements AutoCloseable {

    static final int COUNT = 3;

    /** They live for seconds: what a JVM does to be fast later does not pay. */
    private static final List<String> SHORT_LIVED =
            List.of("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx128m");

    private static final int AFTER_SIGTERM = 143;

    private final Path logs;
    private final IntFunction<List<String>> arguments;
    private final List<ForkedJvm> running = new ArrayList<>();
    private final List<String> complaints = new ArrayList<>();
    private int starts;

    /** {@code arguments} are those of each consumer, by its number. */
    Consumers(IntFunction<List<String>> arguments, Path logs) {
        this.arguments = arguments;
        this.logs = logs;
    }

    synchronized void start() {
        for (int number = 1; number <= COUNT; number++) {
            running.add(fork(number));
        }
    }

    /** What no consumer should have done: end by itself, or not end when told to. */
    synchronized List<String> complaints() {
        return List.copyOf(complaints);
    }

    synchronized void kill(int number) {
        jvm(number).close();
        startAgain(number);
    }

    synchronized void terminate(int number) {
        end(number);
        startAgain(number);
    }

    synchronized void stall(int number, Duration time) throws InterruptedException {
        ForkedJvm stalled = jvm(number);
        stalled.freeze();
        try {
            Thread.sleep(time.toMillis());
        } finally {
            stalled.thaw();
        }
    }

    /** Those that have ended by themselves are complained about, and started again. */
    synchronized void mend() {
        for (int number = 1; number <= COUNT; number++) {
            if (!jvm(number).isAlive()) {
                complaints.add("consumer %d ended by itself with exit code %d, see %s"
                        .formatted(number, jvm(number).exitCode(), logs));
                jvm(number).close();
                startAgain(number);
            }
        }
    }

    /** SIGTERM for all: each finishes what it has begun. */
    synchronized void stop() {
        running.forEach(ForkedJvm::terminate);
        for (int number = 1; number <= COUNT; number++) {
            end(number);
        }
    }

    private void end(int number) {
        ForkedJvm jvm = jvm(number);
        jvm.terminate();
        try {
            int code = jvm.exitCode();
            if (code != AFTER_SIGTERM) {
                complaints.add("consumer %d ended with exit code %d on SIGTERM, see %s".formatted(number, code, logs));
            }
        } catch (IllegalStateException hangs) {
            complaints.add("consumer %d hangs: %s".formatted(number, hangs.getMessage()));
        } finally {
            jvm.close();
        }
    }

    private ForkedJvm jvm(int number) {
        return running.get(number - 1);
    }

    private void startAgain(int number) {
        running.set(number - 1, fork(number));
    }

    private ForkedJvm fork(int number) {
        Path log = logs.resolve("consumer-%d-start-%03d.log".formatted(number, ++starts));
        return ForkedJvm.start(
                ChaosConsumer.class,
                SHORT_LIVED,
                Map.of("org.slf4j.simpleLogger.logFile", log.toString()),
                arguments.apply(number).toArray(String[]::new));
    }

    @Override
    public synchronized void close() {
        running.forEach(ForkedJvm::close);
    }
}
