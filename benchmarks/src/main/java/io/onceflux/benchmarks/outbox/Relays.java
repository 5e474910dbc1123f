package io.onceflux.benchmarks.outbox;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.onceflux.benchmarks.scenario.Site;
import io.onceflux.outbox.Outbox;
import io.onceflux.outbox.OutboxEntry;
import io.onceflux.outbox.OutboxMessage;
import io.onceflux.outbox.Relay;
import io.onceflux.postgres.OutboxTable;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.pool.ConnectionPoolConfiguration;
import io.r2dbc.spi.ConnectionFactories;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.HdrHistogram.ConcurrentHistogram;
import org.HdrHistogram.Histogram;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * 1, 2 and 4 relays on one outbox, each with connections of its own, and a target that takes at once whatever it gets: how many entries a
 * second they send of a backlog of 10,000 keys, and how long one waits from its append to its arrival where 500 come in a second.
 */
public final class Relays {

    private static final int BACKLOG = 100_000;
    private static final int KEYS = 10_000;
    private static final int A_SECOND = 500;
    private static final Duration WATCHED = Duration.ofSeconds(10);
    private static final Duration LIMIT = Duration.ofMinutes(3);

    private final Supplier<Site> sites;
    private final Consumer<String> told;
    private final Map<String, List<Double>> rates = new LinkedHashMap<>();
    private final Map<String, List<Histogram>> ages = new LinkedHashMap<>();

    /** @param sites a database for each run */
    public Relays(Supplier<Site> sites, Consumer<String> told) {
        this.sites = sites;
        this.told = told;
    }

    /** Entries a second, by how many relays, a number for each round. */
    public Map<String, List<Double>> rates() {
        return rates;
    }

    /** Nanoseconds from append to arrival, by how many relays, for each round. */
    public Map<String, List<Histogram>> ages() {
        return ages;
    }

    /** The first round warms up, and is not kept. */
    public void measure(int rounds) {
        for (int round = 0; round <= rounds; round++) {
            for (int instances : List.of(1, 2, 4)) {
                String what = "relay/instances=" + instances;
                Run run = new Run(sites.get(), instances);
                double rate = run.workOff();
                Histogram age = run.watch();
                run.close();
                if (round > 0) {
                    rates.computeIfAbsent(what, first -> new ArrayList<>()).add(rate);
                    ages.computeIfAbsent(what, first -> new ArrayList<>()).add(age);
                }
                told.accept("round %d of %d, %d relays: %,.0f a second, p99 %.1f ms"
                        .formatted(round, rounds, instances, rate, age.getValueAtPercentile(99) / 1e6));
            }
        }
    }

    /** Some relays on a table of their own. */
    private static final class Run {

        private final Site site;
        private final Outbox outbox = Outbox.in(OutboxTable.outbox());
        private final List<ConnectionPool> pools = new ArrayList<>();
        private final List<Relay> relays = new ArrayList<>();
        private final List<Disposable> running = new ArrayList<>();
        private final int instances;
        private final LongAdder arrived = new LongAdder();
        private final Histogram ages = new ConcurrentHistogram(3);

        Run(Site site, int instances) {
            this.site = site;
            this.instances = instances;
        }

        /** Entries a second of what is there at the start. */
        double workOff() {
            run(OutboxTable.outbox().createSql());
            run("INSERT INTO outbox (idempotency_key, kind, message_key, payload, header_names, header_values)"
                    + " SELECT n::text, 'receipt', (n % " + KEYS + ")::text, 'x', '{}', '{}' FROM generate_series(1, "
                    + BACKLOG + ") n");
            run("VACUUM ANALYZE outbox");
            for (int i = 0; i < instances; i++) {
                ConnectionPool pool = pool();
                pools.add(pool);
                relays.add(Relay.of(outbox)
                        .to("receipt", this::arrive)
                        .batchSize(1_000)
                        .build(pool));
            }
            long start = System.nanoTime();
            relays.forEach(relay -> running.add(relay.run().subscribe()));
            await(BACKLOG);
            return BACKLOG * 1e9 / (System.nanoTime() - start);
        }

        private ConnectionPool pool() {
            return new ConnectionPool(ConnectionPoolConfiguration.builder(ConnectionFactories.get(site.r2dbcUrl()))
                    .maxSize(6)
                    .build());
        }

        private Mono<Void> arrive(OutboxMessage message) {
            return Mono.fromRunnable(() -> {
                String appendedAt = message.headers().get("appended-at");
                if (appendedAt != null) {
                    ages.recordValue(System.nanoTime() - Long.parseLong(appendedAt));
                }
                arrived.increment();
            });
        }

        /** How long entries wait that come one by one. */
        Histogram watch() {
            ConnectionPool pool = pool();
            pools.add(pool);
            long count = WATCHED.toSeconds() * A_SECOND;
            Flux.interval(Duration.ofNanos(1_000_000_000L / A_SECOND))
                    .onBackpressureBuffer()
                    .take(count)
                    .flatMap(
                            n -> Mono.usingWhen(
                                    pool.create(),
                                    connection -> outbox.appendAs(
                                            connection,
                                            "watched-" + n,
                                            OutboxEntry.of("receipt", "w" + n % KEYS, "x".getBytes(UTF_8))
                                                    .header("appended-at", Long.toString(System.nanoTime()))),
                                    io.r2dbc.spi.Connection::close),
                            6)
                    .then()
                    .block(LIMIT);
            await(BACKLOG + count);
            return ages.copy();
        }

        private void await(long entries) {
            long deadline = System.nanoTime() + LIMIT.toNanos();
            while (arrived.sum() < entries) {
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException("%d of %d entries arrived".formatted(arrived.sum(), entries));
                }
                LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(1));
            }
        }

        private void run(String sql) {
            try (Connection connection = DriverManager.getConnection(site.jdbcUrl(), site.user(), site.password());
                    Statement statement = connection.createStatement()) {
                statement.execute(sql);
            } catch (SQLException e) {
                throw new IllegalStateException("the outbox could not be filled", e);
            }
        }

        void close() {
            relays.forEach(relay -> relay.stop().block(LIMIT));
            running.forEach(Disposable::dispose);
            pools.forEach(ConnectionPool::dispose);
        }
    }
}
