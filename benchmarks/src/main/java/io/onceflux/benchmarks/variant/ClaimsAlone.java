package io.onceflux.benchmarks.variant;

import io.onceflux.Claims;
import io.onceflux.Claims.Claim;
import io.onceflux.MessageKey;
import io.onceflux.benchmarks.scenario.Books;
import io.onceflux.benchmarks.scenario.Site;
import io.onceflux.postgres.ClaimTable;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.spi.Connection;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import java.util.stream.IntStream;
import reactor.core.publisher.Mono;

/**
 * Claims of random keys in a table that has many already: a statement and a transaction for each hundred. Random keys are the
 * hardest for an index: each goes to another page.
 */
final class ClaimsAlone implements Variant {

    private static final String CONSUMER = "benchmark";
    private static final Duration LIMIT = Duration.ofSeconds(30);

    private final Case what;
    private final Books books;
    private final ConnectionPool connections;
    private final Claims claims = Claims.in(ClaimTable.processedMessages());
    private final Map<String, Long> sizes;
    private final Loops loops;

    ClaimsAlone(Case what, Site site) {
        this.what = what;
        this.books = Books.open(site);
        books.fillClaims(what.rows());
        this.sizes = books.sizesOfClaims();
        this.connections = Connections.pool(site, what.lanes());
        this.loops = new Loops(what.lanes());
        List<String> warnings = Mono.usingWhen(
                        connections.create(), one -> claims.verify(one, CONSUMER), Connection::close)
                .block(LIMIT);
        if (warnings == null || !warnings.isEmpty()) {
            throw new IllegalStateException("the claim table is not as it should be: " + warnings);
        }
    }

    @Override
    public long run(Duration time) {
        return loops.run(time, lane -> Mono.usingWhen(connections.create(), this::transaction, Connection::close));
    }

    private Mono<Integer> transaction(Connection connection) {
        return Mono.from(connection.beginTransaction())
                .then(Mono.defer(() -> claims.claim(connection, wanted(), LIMIT)))
                .flatMap(claimed -> Mono.from(connection.commitTransaction())
                        .thenReturn(claimed.fresh().size()));
    }

    private List<Claim> wanted() {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        return IntStream.range(0, what.batch())
                .mapToObj(i ->
                        new Claim(new MessageKey(CONSUMER, new UUID(random.nextLong(), random.nextLong()).toString())))
                .toList();
    }

    @Override
    public void rest() {
        loops.rest();
    }

    @Override
    public Map<String, Long> sizes() {
        return sizes;
    }

    @Override
    public void audit() {
        long expected = what.rows() + loops.done();
        if (books.claims() != expected) {
            throw new IllegalStateException(
                    "%,d claims are there, not the %,d that were made".formatted(books.claims(), expected));
        }
    }

    @Override
    public void close() {
        connections.dispose();
    }
}
