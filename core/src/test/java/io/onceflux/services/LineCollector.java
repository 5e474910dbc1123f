package io.onceflux.services;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Predicate;

/** Keeps every line of a stream, read by a thread of its own, so that the writer never waits for a reader. */
final class LineCollector {
    private static final int TAIL = 20;

    private final List<String> lines = new ArrayList<>();
    private boolean ended;

    private LineCollector() {}

    static LineCollector of(InputStream stream, String threadName) {
        LineCollector collector = new LineCollector();
        Thread reader = new Thread(() -> collector.readAll(stream), threadName);
        reader.setDaemon(true);
        reader.start();
        return collector;
    }

    synchronized List<String> lines() {
        return List.copyOf(lines);
    }

    synchronized List<String> tail() {
        return List.copyOf(lines.subList(Math.max(0, lines.size() - TAIL), lines.size()));
    }

    /** The first line that is wanted, waiting for it until the limit or the end of the stream. */
    synchronized Optional<String> await(Predicate<String> wanted, Duration limit) {
        long end = System.nanoTime() + limit.toNanos();
        for (int next = 0; ; next++) {
            while (next == lines.size()) {
                long left = (end - System.nanoTime()) / 1_000_000;
                if (ended || left <= 0) {
                    return Optional.empty();
                }
                try {
                    wait(left);
                } catch (InterruptedException e) {
                    throw Waiting.interrupted(e);
                }
            }
            if (wanted.test(lines.get(next))) {
                return Optional.of(lines.get(next));
            }
        }
    }

    private void readAll(InputStream stream) {
        try (BufferedReader reader = new BufferedReader(new InputStreamReader(stream, UTF_8))) {
            for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                add(line);
            }
        } catch (IOException e) {
            // The stream of a killed process may end in the middle.
        } finally {
            end();
        }
    }

    private synchronized void add(String line) {
        lines.add(line);
        notifyAll();
    }

    private synchronized void end() {
        ended = true;
        notifyAll();
    }
}
