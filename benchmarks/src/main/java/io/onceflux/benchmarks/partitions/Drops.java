package io.onceflux.benchmarks.partitions;

import io.onceflux.Retention;
import io.onceflux.benchmarks.scenario.Site;
import io.onceflux.postgres.Buckets;
import io.onceflux.postgres.ClaimTable;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.pool.ConnectionPoolConfiguration;
import io.r2dbc.spi.ConnectionFactories;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.HdrHistogram.Histogram;
import reactor.core.publisher.Mono;

/**
 * A table of claims of thirty days, once in partitions and once plain, and its retention, which removes one day at a time while others claim: how
 * long that takes, and what the others wait.
 */
public final class Drops {

    private static final int DAYS = 30;
    private static final Duration QUIET = Duration.ofSeconds(5);
    private static final Duration LIMIT = Duration.ofMinutes(10);

    private final Supplier<Site> sites;
    private final Consumer<String> told;
    private final long claims;
    private final Map<String, List<Double>> rates = new LinkedHashMap<>();
    private final Map<String, List<Histogram>> waits = new LinkedHashMap<>();

    /**
     * @param sites a database for each table
     * @param claims how many are there before
     */
    public Drops(Supplier<Site> sites, Consumer<String> told, long claims) {
        this.sites = sites;
        this.told = told;
        this.claims = claims;
    }

    /** Claims of a day that are removed in a second, by the kind of table, a number for each round. */
    public Map<String, List<Double>> rates() {
        return rates;
    }

    /** Nanoseconds that a transaction with one claim takes, by the kind of table and what goes on, for each round. */
    public Map<String, List<Histogram>> waits() {
        return waits;
    }

    public void measure(int rounds) {
        measure(new FilledTable(sites.get(), true, DAYS, claims), rounds);
        measure(new FilledTable(sites.get(), false, DAYS, claims), rounds);
    }

    private void measure(FilledTable filled, int rounds) {
        filled.fill();
        told.accept("%s is filled with %,d claims".formatted(filled.name(), claims));
        ConnectionPool pool = pool(filled.site());
        try (Claimers claimers = new Claimers(filled)) {
            claimers.during(() -> rest(QUIET)); // To warm up.
            for (int round = 1; round <= rounds; round++) {
                keep(filled.name() + "/quiet", claimers.during(() -> rest(QUIET)));
                Retention retention = Retention.of(filled.table(), Duration.ofDays(DAYS - round));
                long[] nanos = new long[1];
                Histogram meanwhile = claimers.during(() -> nanos[0] = run(retention, pool));
                keep(filled.name() + "/while-removed", meanwhile);
                double seconds = nanos[0] / 1e9;
                rates.computeIfAbsent(filled.name(), first -> new ArrayList<>()).add(claims / (double) DAYS / seconds);
                told.accept(
                        "round %d of %d, %s: a day is gone after %.3f s, claims meanwhile: p99 %.1f ms, longest %.1f ms"
                                .formatted(
                                        round,
                                        rounds,
                                        filled.name(),
                                        seconds,
                                        meanwhile.getValueAtPercentile(99) / 1e6,
                                        meanwhile.getMaxValue() / 1e6));
            }
            filled.requireDaysLeft(DAYS - rounds);
        } finally {
            pool.dispose();
        }
    }

    private void keep(String what, Histogram wait) {
        waits.computeIfAbsent(what, first -> new ArrayList<>()).add(wait);
    }

    private static long run(Retention retention, ConnectionPool pool) {
        long start = System.nanoTime();
        retention.run(pool).then().block(LIMIT);
        return System.nanoTime() - start;
    }

    private static void rest(Duration time) {
        Mono.delay(time).then().block();
    }

    private static ConnectionPool pool(Site site) {
        return new ConnectionPool(ConnectionPoolConfiguration.builder(ConnectionFactories.get(site.r2dbcUrl()))
                .maxSize(2)
                .build());
    }

    /** The table that is asked for. */
    static ClaimTable table(boolean inPartitions) {
        ClaimTable plain = ClaimTable.processedMessages();
        return inPartitions ? plain.partitionedBy(Buckets.daily()) : plain;
    }
}
