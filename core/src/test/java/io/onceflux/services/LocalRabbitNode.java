package io.onceflux.services;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A throw-away node of an installed RabbitMQ: its own ports, data, cookie and epmd, on loopback only, in a folder that goes
 * with this JVM. It shares nothing with a RabbitMQ that the machine runs as a service.
 */
final class LocalRabbitNode implements ServerControl {
    private static final Duration START_LIMIT = Duration.ofSeconds(90);
    private static final Duration STOP_LIMIT = Duration.ofSeconds(40);
    private static final String LOG = "server.log";
    private static final String PID_FILE = "node.pid";

    private final RabbitInstallation installation;
    private final ThrowAwayFolder folder;
    private final RabbitNodeSettings settings = RabbitNodeSettings.onFreePorts();
    private @Nullable Process running;

    private LocalRabbitNode(RabbitInstallation installation, ThrowAwayFolder folder, Map<String, String> conf) {
        this.installation = installation;
        this.folder = folder;
        folder.write("enabled_plugins", "[].\n");
        folder.write("rabbitmq.conf", settings.conf(conf));
    }

    static LocalRabbitNode start(RabbitInstallation installation, Map<String, String> conf) {
        LocalRabbitNode node = new LocalRabbitNode(installation, ThrowAwayFolder.create("rabbit"), conf);
        try {
            node.startPortMapper();
            node.restart();
            return node;
        } catch (RuntimeException e) {
            node.close();
            throw e;
        }
    }

    URI uri() {
        return AmqpAddress.ofGuest(RabbitNodeSettings.HOST, settings.port());
    }

    /** Runs {@code rabbitmqctl} for this node and returns its stdout; fails with its stderr. */
    String ctl(List<String> args) {
        List<String> command = new ArrayList<>();
        command.add(installation.script("rabbitmqctl").toString());
        command.addAll(args);
        Path out = folder.path().resolve("ctl.out");
        Path err = folder.path().resolve("ctl.err");
        Process ctl = launch(command, out, err);
        if (!ended(ctl, Duration.ofSeconds(60)) || ctl.exitValue() != 0) {
            ctl.destroyForcibly();
            throw new IllegalStateException("rabbitmqctl " + args + " failed: " + folder.tail("ctl.err"));
        }
        try {
            return Files.readString(out);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Override
    public void restart() {
        if (running != null) {
            throw new IllegalStateException("The local RabbitMQ still runs: kill or stop it first.");
        }
        Path log = folder.path().resolve(LOG);
        Process node = launch(List.of(installation.script("rabbitmq-server").toString()), log, log);
        folder.write(PID_FILE, node.pid() + "\n");
        running = node;
        boolean up = Waiting.holdsWithin(START_LIMIT, () -> !node.isAlive() || AmqpAddress.answers(uri()));
        if (!up || !node.isAlive()) {
            throw new IllegalStateException(
                    "The local RabbitMQ of %s did not start: %s".formatted(installation.sbin(), folder.tail(LOG)));
        }
    }

    @Override
    public void kill() {
        OsProcesses.killTree(node().pid());
        gone();
    }

    @Override
    public void stop() {
        Process node = node();
        thaw();
        OsProcesses.terminate(node.pid());
        if (!ended(node, STOP_LIMIT)) {
            throw new IllegalStateException("The local RabbitMQ did not stop: " + folder.tail(LOG));
        }
        gone();
    }

    @Override
    public void freeze() {
        OsProcesses.freezeTree(node().pid());
    }

    @Override
    public void thaw() {
        OsProcesses.thawTree(node().pid());
    }

    @Override
    public void close() {
        folder.close();
    }

    /**
     * Erlang's epmd, as our child: a node without one would start a daemon that outlives it. One that finds its port
     * taken ends, and is started again.
     */
    private void startPortMapper() {
        Process[] epmd = {launchPortMapper()};
        Waiting.until("epmd listens", START_LIMIT, () -> {
            if (!epmd[0].isAlive()) {
                epmd[0] = launchPortMapper();
            }
            return FreePorts.answers(settings.epmdPort()) && epmd[0].isAlive();
        });
    }

    private Process launchPortMapper() {
        Path log = folder.path().resolve("epmd.log");
        Process epmd = launch(List.of("epmd"), log, log);
        folder.write("epmd.pid", epmd.pid() + "\n");
        return epmd;
    }

    private Process launch(List<String> command, Path out, Path err) {
        ProcessBuilder builder =
                new ProcessBuilder(command).directory(folder.path().toFile());
        builder.environment().keySet().removeIf(key -> key.startsWith("RABBITMQ_") || key.startsWith("ERL_"));
        builder.environment().putAll(settings.environment(folder.path()));
        if (out.equals(err)) {
            builder.redirectErrorStream(true);
        } else {
            builder.redirectError(err.toFile());
        }
        try {
            builder.redirectOutput(out.toFile()).redirectInput(new File("/dev/null"));
            return builder.start();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private Process node() {
        if (running == null) {
            throw new IllegalStateException("The local RabbitMQ is not running.");
        }
        return running;
    }

    private void gone() {
        running = null;
        folder.delete(PID_FILE);
    }

    private static boolean ended(Process process, Duration limit) {
        try {
            return process.waitFor(limit.toMillis(), TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            throw Waiting.interrupted(e);
        }
    }
}
