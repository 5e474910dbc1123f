package io.onceflux.services;

import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.ProcessBuilder.Redirect;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** A real PostgreSQL from the binaries of a Maven artifact, on loopback, in a folder that goes with this JVM. */
final class EmbeddedPostgresServer implements ServerControl {
    static final String HOST = "127.0.0.1";
    private static final String DATA = "data";
    private static final String PID_FILE = DATA + "/postmaster.pid";
    private static final String LOG = "postgres.log";
    private static final Duration START_LIMIT = Duration.ofSeconds(30);
    private static final Duration STOP_LIMIT = Duration.ofSeconds(30);

    private final ThrowAwayFolder folder;
    private final int port;
    private final Map<String, String> settings;
    private @Nullable EmbeddedPostgres running;

    private EmbeddedPostgresServer(ThrowAwayFolder folder, int port, Map<String, String> settings) {
        this.folder = folder;
        this.port = port;
        this.settings = settings;
    }

    static EmbeddedPostgresServer start(int port, Map<String, String> settings) {
        EmbeddedPostgresServer server = new EmbeddedPostgresServer(ThrowAwayFolder.create("postgres"), port, settings);
        try {
            server.restart();
            return server;
        } catch (RuntimeException e) {
            server.folder.close();
            throw e;
        }
    }

    @Override
    public void restart() {
        if (running != null) {
            throw new IllegalStateException("The embedded PostgreSQL still runs: kill or stop it first.");
        }
        Path data = folder.path().resolve(DATA);
        Redirect log = Redirect.appendTo(folder.path().resolve(LOG).toFile());
        EmbeddedPostgres.Builder builder = EmbeddedPostgres.builder()
                .setDataDirectory(data)
                .setCleanDataDirectory(false)
                .setRegisterShutdownHook(false)
                .setLocaleConfig("locale", "C")
                .setPort(port)
                .setPGStartupWait(START_LIMIT)
                .setOutputRedirector(log)
                .setErrorRedirector(log)
                .setServerConfig("listen_addresses", HOST)
                // None in /tmp: after a kill its lock file would be in the way.
                .setServerConfig("unix_socket_directories", "");
        settings.forEach(builder::setServerConfig);
        try {
            running = builder.start();
        } catch (IOException | RuntimeException e) {
            throw new IllegalStateException(
                    "The embedded PostgreSQL did not start (as root it needs unshare, of util-linux); set %s to use another, or see its log: %s"
                            .formatted(PostgresService.URL_VARIABLE, folder.tail(LOG)),
                    e);
        }
    }

    @Override
    public void kill() {
        OsProcesses.killTree(postmaster());
        folder.delete(PID_FILE);
        release();
    }

    @Override
    public void stop() {
        thaw();
        long postmaster = postmaster();
        release();
        // pg_ctl waits no longer than 5 s; a shutdown that has begun goes on.
        if (!Waiting.holdsWithin(STOP_LIMIT, () -> !OsProcesses.isRunning(postmaster))) {
            throw new IllegalStateException("The embedded PostgreSQL did not stop: " + folder.tail(LOG));
        }
    }

    @Override
    public void freeze() {
        OsProcesses.freezeTree(postmaster());
    }

    @Override
    public void thaw() {
        OsProcesses.thawTree(postmaster());
    }

    @Override
    public void close() {
        if (Files.exists(folder.path().resolve(PID_FILE))) {
            thaw();
            release();
        }
        folder.close();
    }

    private long postmaster() {
        try {
            return Long.parseLong(
                    Files.readAllLines(folder.path().resolve(PID_FILE)).get(0).strip());
        } catch (IOException e) {
            throw new IllegalStateException("The embedded PostgreSQL is not running.", e);
        }
    }

    /** Stops the server if it still runs, and gives its folder's file lock back, without which it cannot start again. */
    private void release() {
        if (running == null) {
            return;
        }
        try {
            running.close();
            running = null;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
