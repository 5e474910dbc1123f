package io.onceflux.benchmarks.partitions;

import io.onceflux.Claims;
import io.onceflux.Claims.Claim;
import io.onceflux.MessageKey;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.pool.ConnectionPoolConfiguration;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactories;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import org.HdrHistogram.ConcurrentHistogram;
import org.HdrHistogram.Histogram;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/** Four who claim one new message after the other, a transaction each. */
final class Claimers implements AutoCloseable {

    private static final int LANES = 4;
    private static final String CONSUMER = "benchmark";
    private static final Duration LIMIT = Duration.ofSeconds(30);

    private final Claims claims;
    private final boolean inPartitions;
    private final ConnectionPool pool;

    Claimers(FilledTable table) {
        this.claims = Claims.in(table.table());
        this.inPartitions = table.inPartitions();
        this.pool = new ConnectionPool(ConnectionPoolConfiguration.builder(
                        ConnectionFactories.get(table.site().r2dbcUrl()))
                .maxSize(LANES)
                .build());
        Mono.usingWhen(pool.create(), one -> claims.verify(one, CONSUMER), Connection::close)
                .then()
                .block(LIMIT);
    }

    /** Claims for as long as the work takes. Returns how long each transaction took, in nanoseconds. */
    Histogram during(Runnable work) {
        Histogram took = new ConcurrentHistogram(3);
        Sinks.Empty<Void> end = Sinks.empty();
        Mono<Void> claiming = Flux.range(0, LANES)
                .flatMap(lane -> Mono.defer(() -> timed(took)).repeat().takeUntilOther(end.asMono()), LANES)
                .then();
        var running = claiming.toFuture();
        work.run();
        end.tryEmitEmpty().orThrow();
        Mono.fromFuture(running).block(LIMIT);
        return took;
    }

    private Mono<Boolean> timed(Histogram took) {
        long start = System.nanoTime();
        return Mono.usingWhen(pool.create(), this::transaction, Connection::close)
                .doOnSuccess(done -> took.recordValue(System.nanoTime() - start));
    }

    private Mono<Boolean> transaction(Connection connection) {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        MessageKey key = new MessageKey(CONSUMER, new UUID(random.nextLong(), random.nextLong()).toString());
        return Mono.from(connection.beginTransaction())
                .then(Mono.defer(() -> claims.claim(
                        connection, List.of(new Claim(key, null, inPartitions ? Instant.now() : null)), LIMIT)))
                .flatMap(claimed -> Mono.from(connection.commitTransaction())
                        .thenReturn(!claimed.fresh().isEmpty()));
    }

    @Override
    public void close() {
        pool.dispose();
    }
}
