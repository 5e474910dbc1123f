package io.onceflux.benchmarks.variant;

import io.onceflux.Claims;
import io.onceflux.ConsumerBuilder;
import io.onceflux.Effect;
import io.onceflux.IdempotentConsumer;
import io.onceflux.RecentKeys;
import io.onceflux.Retention;
import io.onceflux.benchmarks.scenario.Books;
import io.onceflux.benchmarks.scenario.Credit;
import io.onceflux.benchmarks.scenario.Order;
import io.onceflux.benchmarks.scenario.Orders;
import io.onceflux.benchmarks.scenario.Site;
import io.onceflux.postgres.ClaimTable;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.spi.ConnectionFactory;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicReference;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/** OnceFlux with messages of this process: into the database, or for the pipeline alone into {@link MemoryDatabase}. */
final class FromMemory implements Variant {

    private static final Duration STOP_LIMIT = Duration.ofSeconds(30);

    private final Supply supply;
    private final OrderSource source;
    private final @Nullable Books books;
    private final boolean claims;
    private final Disposable connections;
    private final IdempotentConsumer<Order> consumer;
    private final Disposable running;
    private final Flux<Retention.Progress> cleaning;
    private final AtomicReference<Throwable> error = new AtomicReference<>();

    private FromMemory(
            Case what,
            @Nullable Books books,
            ConnectionFactory database,
            Disposable connections,
            Claims claims,
            Effect<Order> effect,
            Flux<Retention.Progress> cleaning) {
        this.cleaning = cleaning;
        this.supply = new Supply(new Orders(what.duplicates(), what.customers()));
        this.source = new OrderSource(supply);
        this.books = books;
        this.claims = what.claims();
        this.connections = connections;
        this.consumer = describe(what, claims, effect).build(database);
        this.running = source.transform(consumer).subscribe(outcome -> {}, this::failed);
        source.awaitSubscriber();
    }

    private void failed(Throwable e) {
        error.set(e);
        source.ended(e);
    }

    static FromMemory intoDatabase(Case what, Site site) {
        Books books = Books.open(site);
        ConnectionPool pool = Connections.pool(site, what.lanes());
        return new FromMemory(what, books, pool, pool, claims(what), Credit::one, cleaning(what, site, books));
    }

    /** Old claims are removed while messages are handled, on connections of its own. */
    private static Flux<Retention.Progress> cleaning(Case what, Site site, Books books) {
        if (what.oldClaims() == 0) {
            return Flux.empty();
        }
        books.addOldClaims(what.oldClaims());
        return Flux.usingWhen(
                Mono.fromSupplier(() -> Connections.pool(site, 2)),
                Retention.of(ClaimTable.processedMessages(), Duration.ofDays(7))::run,
                ConnectionPool::disposeLater);
    }

    /** Nothing happens in an effect. */
    static FromMemory alone(Case what) {
        Scheduler eventLoops = what.way().grouping() == Grouping.PER_MESSAGE
                ? Schedulers.immediate()
                : Schedulers.newParallel("event-loop", Runtime.getRuntime().availableProcessors());
        return new FromMemory(
                what,
                null,
                new MemoryDatabase(eventLoops),
                eventLoops,
                what.claims() ? new MemoryClaims(eventLoops) : new NoClaims(),
                (order, db) -> Mono.empty(),
                Flux.empty());
    }

    private static Claims claims(Case what) {
        return what.claims() ? Claims.in(ClaimTable.processedMessages()) : new NoClaims();
    }

    static ConsumerBuilder<Order> describe(Case what, Claims claims, Effect<Order> effect) {
        ConsumerBuilder<Order> unordered =
                describeUnordered(what, claims, effect).identifiedBy(Order::key);
        return what.ordered() ? unordered.orderedBy(Order::customerId) : unordered;
    }

    /** Without id and order. */
    static ConsumerBuilder<Order> describeUnordered(Case what, Claims claims, Effect<Order> effect) {
        ConsumerBuilder<Order> consumer = IdempotentConsumer.<Order>named("benchmark")
                .claims(claims)
                .lanes(what.lanes())
                .maxInFlight(Math.max(256, 2 * what.lanes() * what.batch()));
        if (what.recentKeys()) {
            consumer.recentKeys(RecentKeys.of(1_000_000, Duration.ofMinutes(10)));
        }
        return what.way().grouping().describe(consumer, what.batch(), effect);
    }

    @Override
    public void pace(double perSecond) {
        supply.pace(perSecond);
    }

    @Override
    public Histogram latencies() {
        return supply.latencies();
    }

    @Override
    public long run(Duration time) {
        Disposable meanwhile = cleaning.subscribe(progress -> {}, this::failed);
        try {
            return supply.openFor(time, source::start);
        } finally {
            meanwhile.dispose();
        }
    }

    @Override
    public void rest() {
        Throwable failed = error.get();
        if (failed != null) {
            throw new IllegalStateException("the consumer failed", failed);
        }
        supply.awaitAllDone();
    }

    @Override
    public void audit() {
        source.requireNothingRefused();
        if (books != null) {
            books.requireOnce(supply.distinct(), claims);
        }
    }

    @Override
    public void close() {
        consumer.stop(STOP_LIMIT).block(STOP_LIMIT.multipliedBy(2));
        running.dispose();
        source.close();
        connections.dispose();
    }
}
