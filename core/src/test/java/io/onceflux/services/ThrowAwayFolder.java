package io.onceflux.services;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.ProcessBuilder.Redirect;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;

/**
 * A temporary folder, and the processes that live on it: both vanish when it is closed, and when this JVM ends in
 * whatever way. A process belongs to it when the first line of a {@code *.pid} file in the folder, or in a folder directly
 * below, is its number.
 *
 * <p>A small shell holds the other end of a pipe. When the pipe ends, by {@link #close()} or because the kernel closes it
 * for a JVM that exited or was killed, the shell asks the processes to go (SIGQUIT: at once, but PostgreSQL still gives
 * its shared memory back), then kills them and deletes the folder. So there is one way to clean up, and SIGKILL of the
 * JVM needs no other. Only a SIGKILL of the shell itself leaves something behind. Needs a POSIX shell, so not Windows.
 */
final class ThrowAwayFolder implements AutoCloseable {
    private static final String CLEANER = """
            trap '' INT TERM HUP
            cat >/dev/null
            pids=
            for f in "$1"/*.pid "$1"/*/*.pid; do [ -f "$f" ] && read -r p <"$f" && pids="$pids $p"; done
            all=$pids
            for p in $pids; do all="$all $(pgrep -P "$p" 2>/dev/null)"; done
            any() { for p in $all; do kill -0 "$p" 2>/dev/null && return 0; done; return 1; }
            [ -n "$pids" ] && kill -CONT $all 2>/dev/null
            [ -n "$pids" ] && kill -QUIT $pids 2>/dev/null
            n=0; while any && [ $n -lt 20 ]; do sleep 0.1; n=$((n + 1)); done
            any && kill -KILL $all 2>/dev/null
            n=0; while any && [ $n -lt 10 ]; do sleep 0.1; n=$((n + 1)); done
            rm -rf "$1"
            """;

    private final Path path;
    private final Process cleaner;

    private ThrowAwayFolder(Path path, Process cleaner) {
        this.path = path;
        this.cleaner = cleaner;
    }

    static ThrowAwayFolder create(String name) {
        try {
            Path path = Files.createTempDirectory("onceflux-" + name + "-").toAbsolutePath();
            Process cleaner = new ProcessBuilder("sh", "-c", CLEANER, "onceflux-cleaner", path.toString())
                    .redirectOutput(Redirect.DISCARD)
                    .redirectError(Redirect.DISCARD)
                    .start();
            return new ThrowAwayFolder(path, cleaner);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    Path path() {
        return path;
    }

    Path write(String file, String content) {
        try {
            return Files.writeString(path.resolve(file), content);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    void delete(String file) {
        try {
            Files.deleteIfExists(path.resolve(file));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** The end of a log in this folder, for the sentence of a failure. */
    String tail(String file) {
        try {
            String text = Files.readString(path.resolve(file)).strip();
            return text.substring(Math.max(0, text.length() - 2_000));
        } catch (IOException e) {
            return "(no " + file + ")";
        }
    }

    @Override
    public void close() {
        try {
            cleaner.getOutputStream().close();
            if (!cleaner.waitFor(20, TimeUnit.SECONDS)) {
                throw new IllegalStateException("Cleaning up " + path + " did not end.");
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw Waiting.interrupted(e);
        }
    }
}
