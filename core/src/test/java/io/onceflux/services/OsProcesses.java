package io.onceflux.services;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.ProcessBuilder.Redirect;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Signals to processes of the operating system, parents before children. */
final class OsProcesses {
    private static final Duration LIMIT = Duration.ofSeconds(20);

    private OsProcesses() {}

    /** Sends SIGKILL to the process and its descendants and returns when all are gone. */
    static void killTree(long pid) {
        freeze(pid); // so that it makes no child that is missed
        kill(tree(pid));
    }

    /** Sends SIGKILL to the process alone and returns when it is gone. */
    static void kill(long pid) {
        kill(ProcessHandle.of(pid).stream().toList());
    }

    /** Sends SIGTERM, and unlike {@link Process#destroy()} leaves what the process still writes to be read. */
    static void terminate(long pid) {
        ProcessHandle.of(pid).ifPresent(ProcessHandle::destroy);
    }

    /** Stops the process and its descendants where they are, as a machine that stalls would. */
    static void freezeTree(long pid) {
        // The parent first: once it stands still there are no new children.
        freeze(pid);
        signal("STOP", pids(tree(pid)));
    }

    static void thawTree(long pid) {
        signal("CONT", pids(tree(pid)));
    }

    static void freeze(long pid) {
        signal("STOP", List.of(pid));
    }

    static void thaw(long pid) {
        signal("CONT", List.of(pid));
    }

    static boolean isRunning(long pid) {
        return ProcessHandle.of(pid).map(OsProcesses::isRunning).orElse(false);
    }

    private static boolean isRunning(ProcessHandle process) {
        return process.isAlive() && !isZombie(process.pid());
    }

    /** Where nobody collects orphans (a container without an init) a dead process stays visible for ever. */
    private static boolean isZombie(long pid) {
        Path stat = Path.of("/proc", Long.toString(pid), "stat");
        try {
            String line = Files.readString(stat);
            return line.charAt(line.lastIndexOf(')') + 2) == 'Z';
        } catch (IOException e) {
            return false; // no /proc here, or the process is gone by now
        }
    }

    private static List<ProcessHandle> tree(long pid) {
        return ProcessHandle.of(pid).stream()
                .flatMap(process -> Stream.concat(Stream.of(process), process.descendants()))
                .toList();
    }

    private static List<Long> pids(List<ProcessHandle> processes) {
        return processes.stream().map(ProcessHandle::pid).toList();
    }

    private static void kill(List<ProcessHandle> processes) {
        processes.forEach(ProcessHandle::destroyForcibly);
        Waiting.until(
                "the killed processes " + pids(processes) + " are gone",
                LIMIT,
                () -> processes.stream().noneMatch(OsProcesses::isRunning));
    }

    private static void signal(String signal, List<Long> pids) {
        String targets = pids.stream().map(String::valueOf).collect(Collectors.joining(" "));
        try {
            // The shell's own kill: not every machine has one as a program. A child may have ended meanwhile.
            Process kill = new ProcessBuilder("sh", "-c", "kill -" + signal + " " + targets)
                    .redirectOutput(Redirect.DISCARD)
                    .redirectError(Redirect.DISCARD)
                    .start();
            if (!kill.waitFor(LIMIT.toSeconds(), TimeUnit.SECONDS)) {
                throw new IllegalStateException("kill -" + signal + " did not return.");
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw Waiting.interrupted(e);
        }
    }
}
