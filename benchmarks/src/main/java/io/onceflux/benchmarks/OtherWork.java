package io.onceflux.benchmarks;

import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.Timer;
import java.util.TimerTask;
import java.util.regex.Pattern;

/**
 * How much of the processors others have had while it was open: every process that is neither of this program nor a server that is
 * measured. A compiler in the middle of an hour moves figures as much as one at its start.
 */
final class OtherWork implements AutoCloseable {

    /** A server may have been there before, or may have left its parent. */
    private static final Pattern SERVERS = Pattern.compile("postgres|beam\\.smp|erl_child_setup|inet_gethost|epmd");

    private static final Duration EVERY = Duration.ofSeconds(3);

    private final Timer clock = new Timer("other-work", true);
    private final Map<Long, Duration> seen = new HashMap<>();
    private final Set<Long> ours = new HashSet<>(Set.of(ProcessHandle.current().pid()));
    private final long start = System.nanoTime();
    private Duration used = Duration.ZERO;

    private OtherWork() {}

    static OtherWork watch() {
        OtherWork watch = new OtherWork();
        watch.look(false);
        watch.clock.schedule(
                new TimerTask() {
                    @Override
                    public void run() {
                        watch.look(true);
                    }
                },
                EVERY.toMillis(),
                EVERY.toMillis());
        return watch;
    }

    /** The share of all processors since it was opened, from 0 to 1. */
    synchronized double share() {
        look(true);
        long available = (System.nanoTime() - start) * Runtime.getRuntime().availableProcessors();
        return (double) used.toNanos() / available;
    }

    private synchronized void look(boolean count) {
        ProcessHandle.current().descendants().map(ProcessHandle::pid).forEach(ours::add);
        ProcessHandle.allProcesses().filter(this::isOther).forEach(process -> {
            Duration now = process.info().totalCpuDuration().orElse(Duration.ZERO);
            Duration before = seen.put(process.pid(), now);
            if (count) {
                used = used.plus(before == null || now.compareTo(before) < 0 ? now : now.minus(before));
            }
        });
    }

    boolean isOther(ProcessHandle process) {
        return !ours.contains(process.pid())
                && process.info()
                        .command()
                        .map(command -> Path.of(command).getFileName().toString())
                        .filter(name -> SERVERS.matcher(name).matches())
                        .isEmpty();
    }

    @Override
    public void close() {
        clock.cancel();
    }
}
