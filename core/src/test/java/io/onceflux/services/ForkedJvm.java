package io.onceflux.services;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;

/**
 * A Java main class in a JVM of its own, on the class path of this one, so that it can be killed as a crash would.
 *
 * <p>It has the environment of this JVM and an empty stdin. It ends with this JVM, however that ends. A limit that runs out
 * is an {@link IllegalStateException} that quotes the child's last output.
 */
public final class ForkedJvm implements AutoCloseable {
    private static final Duration END_LIMIT = Duration.ofSeconds(30);

    private final String name;
    private final ThrowAwayFolder folder;
    private final Process process;
    private final LineCollector stdout;
    private final LineCollector stderr;

    private ForkedJvm(String name, ThrowAwayFolder folder, Process process) {
        this.name = name;
        this.folder = folder;
        this.process = process;
        this.stdout = LineCollector.of(process.getInputStream(), name + "-stdout");
        this.stderr = LineCollector.of(process.getErrorStream(), name + "-stderr");
    }

    public static ForkedJvm start(Class<?> main, String... args) {
        return start(main, Map.of(), args);
    }

    /** Starts the class's {@code main} with these system properties and arguments; does not wait for anything. */
    public static ForkedJvm start(Class<?> main, Map<String, String> systemProperties, String... args) {
        return start(main, List.of(), systemProperties, args);
    }

    /** As {@link #start(Class, Map, String...)}, with options of the JVM itself such as {@code -Xmx64m}. */
    public static ForkedJvm start(
            Class<?> main, List<String> jvmOptions, Map<String, String> systemProperties, String... args) {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(jvmOptions);
        systemProperties.forEach((key, value) -> command.add("-D" + key + "=" + value));
        command.add(main.getName());
        command.addAll(List.of(args));
        ThrowAwayFolder folder = ThrowAwayFolder.create("jvm");
        ProcessBuilder builder = new ProcessBuilder(command);
        // Not as an argument: a class path can be longer than a command line may be.
        builder.environment().put("CLASSPATH", System.getProperty("java.class.path"));
        try {
            Process process = builder.start();
            process.getOutputStream().close();
            folder.write("jvm.pid", process.pid() + "\n");
            return new ForkedJvm(main.getSimpleName(), folder, process);
        } catch (IOException e) {
            folder.close();
            throw new UncheckedIOException(e);
        }
    }

    public long pid() {
        return process.pid();
    }

    public boolean isAlive() {
        return process.isAlive();
    }

    /** What the child has written to stdout so far. */
    public List<String> lines() {
        return stdout.lines();
    }

    /** Waits for a line on stdout, counting those already there, and returns it; fails at once when the child ends without. */
    public String awaitLine(Predicate<String> wanted, Duration limit) {
        return stdout.await(wanted, limit)
                .orElseThrow(
                        () -> new IllegalStateException("%s did not print the line waited for within %d ms (%s). %s"
                                .formatted(name, limit.toMillis(), state(), lastOutput())));
    }

    /** Sends SIGKILL and waits until the JVM is gone. What it started itself is left alone. */
    public void kill() {
        OsProcesses.kill(pid());
        exitCode();
    }

    /** Sends SIGTERM, on which shutdown hooks run; does not wait. */
    public void terminate() {
        OsProcesses.terminate(pid());
    }

    /** Stalls the JVM, as a long pause of its machine would, until {@link #thaw()}. */
    public void freeze() {
        OsProcesses.freeze(pid());
    }

    public void thaw() {
        OsProcesses.thaw(pid());
    }

    /** Waits up to 30 s for the end and returns the exit code: 137 after SIGKILL, 143 after SIGTERM. */
    public int exitCode() {
        try {
            if (!process.waitFor(END_LIMIT.toMillis(), TimeUnit.MILLISECONDS)) {
                throw new IllegalStateException(
                        "%s did not end within %s. %s".formatted(name, END_LIMIT, lastOutput()));
            }
            folder.delete("jvm.pid");
            return process.exitValue();
        } catch (InterruptedException e) {
            throw Waiting.interrupted(e);
        }
    }

    /** Kills the JVM if it still runs. */
    @Override
    public void close() {
        if (isAlive()) {
            kill();
        }
        exitCode();
        folder.close();
    }

    private String state() {
        return isAlive() ? "it still runs" : "it ended with exit code " + process.exitValue();
    }

    private String lastOutput() {
        return "Last on stdout: %s; last on stderr: %s".formatted(stdout.tail(), stderr.tail());
    }
}
