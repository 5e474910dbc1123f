package io.onceflux.benchmarks.variant;

import io.onceflux.benchmarks.scenario.Books;
import io.onceflux.benchmarks.scenario.Credit;
import io.onceflux.benchmarks.scenario.Order;
import io.onceflux.benchmarks.scenario.Orders;
import io.onceflux.benchmarks.scenario.Site;
import io.r2dbc.pool.ConnectionPool;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.springframework.r2dbc.connection.R2dbcTransactionManager;
import org.springframework.r2dbc.core.DatabaseClient;
import org.springframework.transaction.reactive.TransactionalOperator;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * The claim and the effect in Spring's reactive transaction and nothing else: no retries, no limits, no order, nothing taken apart
 * that fails. About the most that any way over R2DBC can reach.
 */
final class ByHand implements Variant {

    private static final String CLAIM =
            "INSERT INTO processed_messages (consumer, message_key) VALUES ('by-hand', :key) ON CONFLICT DO NOTHING";

    private static final String CLAIM_ALL = """
            INSERT INTO processed_messages (consumer, message_key) SELECT 'by-hand', unnest(:keys::text[])
            ON CONFLICT DO NOTHING RETURNING message_key
            """;

    private final Case what;
    private final Books books;
    private final ConnectionPool connections;
    private final DatabaseClient db;
    private final TransactionalOperator transaction;
    private final Orders orders = new Orders(0);
    private final Loops loops;
    private final long[] next;

    ByHand(Case what, Site site) {
        this.what = what;
        this.books = Books.open(site);
        this.connections = Connections.pool(site, what.lanes());
        this.db = DatabaseClient.create(connections);
        this.transaction = TransactionalOperator.create(new R2dbcTransactionManager(connections));
        this.loops = new Loops(what.lanes());
        this.next = IntStream.range(0, what.lanes()).asLongStream().toArray();
    }

    @Override
    public long run(Duration time) {
        return loops.run(time, this::transaction);
    }

    private Mono<Integer> transaction(int lane) {
        List<Order> group = group(lane);
        return transaction
                .transactional(what.claims() ? claim(group).flatMap(this::effect) : effect(group))
                .thenReturn(group.size());
    }

    /** The messages that were claimed now. */
    private Mono<List<Order>> claim(List<Order> group) {
        if (what.way().grouping() == Grouping.PER_MESSAGE) {
            return db.sql(CLAIM)
                    .bind("key", group.get(0).key())
                    .fetch()
                    .rowsUpdated()
                    .map(rows -> rows == 1 ? group : List.of());
        }
        return db.sql(CLAIM_ALL)
                .bind("keys", group.stream().map(Order::key).toArray(String[]::new))
                .map(row -> Objects.requireNonNull(row.get(0, String.class)))
                .all()
                .collect(Collectors.toSet())
                .map(fresh -> group.stream()
                        .filter(order -> fresh.contains(order.key()))
                        .toList());
    }

    private Mono<Void> effect(List<Order> group) {
        if (group.isEmpty()) {
            return Mono.empty();
        }
        return what.way().grouping() == Grouping.SET_BASED
                ? Credit.all(group, db)
                : Flux.fromIterable(group)
                        .concatMap(order -> Credit.one(order, db))
                        .then();
    }

    /** Lanes have no customers in common, so they never wait for each other; as with OnceFlux. */
    private List<Order> group(int lane) {
        long first = next[lane];
        next[lane] += (long) what.batch() * what.lanes();
        return IntStream.range(0, what.batch())
                .mapToObj(i -> orders.message(first + (long) i * what.lanes()))
                .toList();
    }

    @Override
    public void rest() {
        loops.rest();
    }

    @Override
    public void audit() {
        books.requireOnce(loops.done(), what.claims());
    }

    @Override
    public void close() {
        connections.dispose();
    }
}
