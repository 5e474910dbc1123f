package io.onceflux.benchmarks.scale;

import io.onceflux.benchmarks.scenario.Books;
import io.onceflux.benchmarks.scenario.Orders;
import io.onceflux.benchmarks.scenario.Site;
import io.onceflux.benchmarks.variant.BrokerTopic;
import io.onceflux.services.ForkedJvm;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * 1, 2 and 4 processes on one topic of 12 partitions and one PostgreSQL: how many messages a second they do together, once they share
 * the partitions; and how many duplicates there are when a further one joins and leaves under load.
 */
public final class ScaleOut {

    /** A process: less would measure how its code is compiled, and the more the more there are. */
    private static final int WARM_UP = 30_000;

    private static final int MEASURED = 60_000;
    private static final int DISTURBED = 40_000;
    private static final Duration LIMIT = Duration.ofMinutes(3);
    private static final List<String> JVM = List.of("-Xms256m", "-Xmx256m", "-XX:+UseParallelGC");

    private final Supplier<Site> sites;
    private final Consumer<String> told;
    private final Map<String, List<Double>> rates = new LinkedHashMap<>();
    private final Map<String, Map<String, Long>> counts = new LinkedHashMap<>();

    /** @param sites a database and topic for each run */
    public ScaleOut(Supplier<Site> sites, Consumer<String> told) {
        this.sites = sites;
        this.told = told;
    }

    /** Messages a second, by how many processes, a number for each round. */
    public Map<String, List<Double>> rates() {
        return rates;
    }

    /** What happened while a further one joined and left: messages, and duplicates, in all rounds. */
    public Map<String, Map<String, Long>> counts() {
        return counts;
    }

    public void measure(int rounds) {
        for (int round = 1; round <= rounds; round++) {
            for (int processes : List.of(1, 2, 4)) {
                String what = "kafka-grouped/processes=" + processes;
                double rate = run(what, processes);
                rates.computeIfAbsent(what, first -> new ArrayList<>()).add(rate);
                told.accept("round %d of %d, %d processes: %,.0f a second".formatted(round, rounds, processes, rate));
            }
        }
    }

    private double run(String what, int processes) {
        Site site = sites.get();
        Books books = Books.open(site);
        Deque<ForkedJvm> running = new ArrayDeque<>();
        try (BrokerTopic topic = new BrokerTopic(site, new Orders(0))) {
            for (int i = 0; i < processes; i++) {
                running.add(start(site));
            }
            topic.awaitMembers(processes);
            int warmUp = processes * WARM_UP;
            topic.fill(warmUp);
            await(books, warmUp, running);

            long start = System.nanoTime();
            topic.fill(MEASURED);
            await(books, warmUp + MEASURED, running);
            double rate = MEASURED * 1e9 / (System.nanoTime() - start);

            topic.fill(DISTURBED);
            running.add(start(site));
            topic.awaitMembers(processes + 1);
            long duplicates = stop(running.removeFirst());
            await(books, warmUp + MEASURED + DISTURBED, running);
            while (!running.isEmpty()) {
                duplicates += stop(running.removeFirst());
            }
            topic.requireEmpty();
            books.requireOnce(topic.distinct(), true);
            Map<String, Long> count = counts.computeIfAbsent(what, first -> new LinkedHashMap<>());
            count.merge("messages", topic.published(), Long::sum);
            count.merge("duplicates", duplicates, Long::sum);
            return rate;
        } finally {
            running.forEach(ForkedJvm::close);
        }
    }

    private static ForkedJvm start(Site site) {
        return ForkedJvm.start(ScaledConsumer.class, JVM, Map.of(), ScaledConsumer.arguments(site));
    }

    /** How many of its outcomes were duplicates. */
    private static long stop(ForkedJvm process) {
        try (process) {
            process.terminate();
            String outcomes = process.awaitLine(line -> line.startsWith(ScaledConsumer.OUTCOMES), LIMIT);
            int unused = process.exitCode();
            return Long.parseLong(outcomes.split(" ", -1)[2]);
        }
    }

    private static void await(Books books, long credited, Deque<ForkedJvm> running) {
        long deadline = System.nanoTime() + LIMIT.toNanos();
        while (books.credited() < credited) {
            if (System.nanoTime() > deadline || !running.stream().allMatch(ForkedJvm::isAlive)) {
                throw new IllegalStateException(
                        "%d of %d messages were credited".formatted(books.credited(), credited));
            }
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(20));
        }
    }
}
