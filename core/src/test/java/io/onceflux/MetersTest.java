package io.onceflux;

import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.run;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.DistributionSummary;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.Tag;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.distribution.ValueAtPercentile;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.onceflux.micrometer.ConsumerMeter;
import io.onceflux.micrometer.ConsumerMeters;
import io.r2dbc.pool.ConnectionPool;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

class MetersTest {

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();

    @AutoClose
    private final CommitCuttingProxy proxy = new CommitCuttingProxy(database.host(), database.port());

    @AutoClose
    private final SimpleMeterRegistry registry = new SimpleMeterRegistry();

    private final ConnectionPool pool =
            database.pool(10, database.configuration().host("127.0.0.1").port(proxy.port()));

    @Test
    void outcomesRetriesSettlementsAndUnknownCommitsAreCounted() {
        proxy.toCutAfter.set(1);
        Effect<Order> failing = (order, db) -> order.id().equals("bad")
                ? db.sql("SELECT 1 / 0").then()
                : order.id().equals("sick") ? Mono.error(new IllegalStateException("sick")) : order.apply(db);
        IdempotentConsumer<Order> consumer =
                orders(failing).listener(ConsumerMeters.in(registry)).build(pool);
        run(consumer, TestDelivery.order("1")); // Its COMMIT takes place without an answer.
        run(consumer, List.of(TestDelivery.order("2"), TestDelivery.order("2"), TestDelivery.order("bad")));
        run(consumer, TestDelivery.order("sick"));

        assertThat(messages("applied")).isEqualTo(1);
        assertThat(messages("duplicate")).isEqualTo(2);
        assertThat(messages("failed")).isEqualTo(2);
        assertThat(messages("stale")).isZero();
        assertThat(count("onceflux.commits.unknown")).isEqualTo(1);
        assertThat(count("onceflux.retries", "kind", "infrastructure")).isEqualTo(1);
        assertThat(count("onceflux.retries", "kind", "effect", "sqlstate.class", "none"))
                .isEqualTo(2);
        assertThat(count("onceflux.settlements", "settlement", "acknowledge")).isEqualTo(3);
        assertThat(count("onceflux.settlements", "settlement", "dead_letter")).isEqualTo(2);
        assertThat(registry.get("onceflux.messages").timers())
                .allSatisfy(timer ->
                        assertThat(timer.totalTime(TimeUnit.MILLISECONDS) > 0).isEqualTo(timer.count() > 0));
    }

    @Test
    void batchesClaimsAndLanesAreMeasured() {
        Plug plug = new Plug();
        IdempotentConsumer<Order> consumer = Consumers.batches(10, plug.then(Order::apply))
                .lanes(2)
                .orderedBy(Order::customer)
                .listener(ConsumerMeters.in(registry))
                .build(pool);
        List<TestDelivery<Order>> ofOneCustomer = List.of(
                TestDelivery.of(new Order("plug", "same", 1)),
                TestDelivery.of(new Order("1", "same", 1)),
                TestDelivery.of(new Order("2", "same", 1)),
                TestDelivery.of(new Order("3", "same", 1)));
        CompletableFuture<List<Outcome>> outcomes = plug.start(consumer, ofOneCustomer);

        await().untilAsserted(() -> assertThat(lanes("onceflux.lane.queued")).containsExactlyInAnyOrder(3.0, 0.0));
        assertThat(lanes("onceflux.lane.in.flight")).containsExactlyInAnyOrder(1.0, 0.0);
        plug.pull();
        assertThat(outcomes).succeedsWithin(Duration.ofSeconds(30));
        assertThat(lanes("onceflux.lane.queued")).containsOnly(0.0);
        assertThat(lanes("onceflux.lane.in.flight")).containsOnly(0.0);

        DistributionSummary batches = registry.get("onceflux.batch.size").summary();
        assertThat(batches.count()).isEqualTo(2);
        assertThat(batches.totalAmount()).isEqualTo(4);
        assertThat(batches.max()).isEqualTo(3);
        assertThat(registry.get("onceflux.claims").timer().count()).isEqualTo(2);
        assertThat(registry.get("onceflux.claims").timer().totalTime(TimeUnit.NANOSECONDS))
                .isPositive();
    }

    private List<Double> lanes(String meter) {
        return registry.get(meter).gauges().stream().map(Gauge::value).toList();
    }

    /** A copy that is at work elsewhere is waited for in the claim. */
    @Test
    void waitingForAClaimIsAPartOfItsTime() {
        Plug plug = new Plug();
        IdempotentConsumer<Order> elsewhere = orders(plug.then(Order::apply)).build(pool);
        IdempotentConsumer<Order> consumer =
                orders(Order::apply).listener(ConsumerMeters.in(registry)).build(pool);
        CompletableFuture<List<Outcome>> first = plug.start(elsewhere, List.of(TestDelivery.order("plug")));
        await().until(() -> database.count("SELECT count(*) FROM pg_stat_activity WHERE datname ="
                        + " current_database() AND state = 'idle in transaction'")
                == 1);
        CompletableFuture<List<Outcome>> second = Consumers.start(consumer, List.of(TestDelivery.order("plug")));
        await().until(this::somebodyWaitsForALock);
        long waiting = System.nanoTime();
        assertThat(somebodyWaitsForALock()).isTrue();
        long waited = System.nanoTime() - waiting;
        plug.pull();

        assertThat(first).succeedsWithin(Duration.ofSeconds(30));
        assertThat(second).succeedsWithin(Duration.ofSeconds(30));
        assertThat(registry.get("onceflux.claims").timer().max(TimeUnit.NANOSECONDS))
                .isGreaterThan((double) waited);
    }

    private boolean somebodyWaitsForALock() {
        return database.count("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND"
                        + " wait_event_type = 'Lock'")
                == 1;
    }

    @Test
    void percentilesAreComputedWhereTheyAreAskedFor() {
        run(
                orders(Order::apply)
                        .listener(ConsumerMeters.in(registry).percentiles(0.5, 0.99))
                        .build(pool),
                TestDelivery.order("1"));
        Timer timer =
                registry.get("onceflux.messages").tag("outcome", "applied").timer();
        assertThat(timer.takeSnapshot().percentileValues())
                .extracting(ValueAtPercentile::percentile)
                .containsExactly(0.5, 0.99);
        assertThatThrownBy(() -> ConsumerMeters.in(registry).percentiles(99))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessage("a percentile must be from 0 to 1, but is 99.0");
    }

    @Test
    void whatRecentKeysHaveSavedIsCounted() {
        IdempotentConsumer<Order> consumer = orders(Order::apply)
                .recentKeys(RecentKeys.of(10, Duration.ofMinutes(1)))
                .listener(ConsumerMeters.in(registry))
                .build(pool);
        run(consumer, TestDelivery.order("1"));
        assertThat(count("onceflux.recent.keys")).isZero();
        run(consumer, List.of(TestDelivery.order("1"), TestDelivery.order("2")));
        run(consumer, TestDelivery.order("1"));

        assertThat(count("onceflux.recent.keys")).isEqualTo(2);
        assertThat(messages("duplicate")).isEqualTo(2);
        assertThat(messages("applied")).isEqualTo(2);
    }

    @Test
    void whatIsHeldAndWhatIsDroppedCanBeSeen() {
        IdempotentConsumer<Order> consumer = orders((order, db) ->
                        db.sql("INSERT INTO not_yet_there VALUES (1)").then())
                .listener(ConsumerMeters.in(registry))
                .build(pool);
        assertThat(held("broken_setup")).isZero();
        CompletableFuture<List<Outcome>> outcomes = Flux.<Delivery<Order>>fromIterable(TestDelivery.orders("h", 20))
                .concatWith(Flux.never())
                .transform(consumer)
                .collectList()
                .toFuture();
        await().untilAsserted(() -> assertThat(held("broken_setup")).isEqualTo(1));
        assertThat(held("infrastructure")).isZero();
        assertThat(count("onceflux.retries", "kind", "broken_setup", "sqlstate.class", "42"))
                .isPositive();

        consumer.stop().block(Duration.ofSeconds(10));
        assertThat(outcomes).isCompleted();
        assertThat(count("onceflux.deliveries.dropped")).isEqualTo(20);
        assertThat(count("onceflux.settlements", "settlement", "requeue")).isEqualTo(20);
    }

    @Test
    void everyMeterIsThereAtZeroWhenAConsumerIsBuilt() {
        assertThat(orders(Order::apply).listener(ConsumerMeters.in(registry)).build(pool))
                .isNotNull();

        assertThat(registry.getMeters())
                .extracting(meter -> meter.getId().getName())
                .containsAll(Arrays.stream(ConsumerMeter.values())
                        .map(ConsumerMeter::getName)
                        .toList());
        for (Meter meter : registry.getMeters()) {
            assertThat(meter.measure())
                    .allSatisfy(measured -> assertThat(measured.getValue()).isZero());
        }
    }

    @Test
    void aConsumerThatIsBuiltAgainIsSeenByTheGaugesOfTheFirst() {
        ConsumerListener first = ConsumerMeters.in(registry).forConsumer("loyalty");
        ConsumerListener second = ConsumerMeters.in(registry).forConsumer("loyalty");
        second.onHeld(FailureKind.INFRASTRUCTURE, new IllegalStateException("away"));
        assertThat(held("infrastructure")).isEqualTo(1);
        first.onResumed();
        assertThat(held("infrastructure")).isEqualTo(1);

        second.onHeld(FailureKind.BROKEN_SETUP, new IllegalStateException("no table"));
        assertThat(held("infrastructure")).isZero();
        assertThat(held("broken_setup")).isEqualTo(1);
        second.onResumed();
        assertThat(held("broken_setup")).isZero();
    }

    /** Ids, texts and SQLSTATEs come from outside; tags must not. */
    @Test
    void theNumberOfMetersDoesNotGrowWithTheMessages() {
        ConsumerListener listener = ConsumerMeters.in(registry).forConsumer("loyalty");
        listener.onRetry(TestDelivery.order("first"), FailureKind.EFFECT, 1, Duration.ZERO, state("ZZ000"));
        listener.onRetry(TestDelivery.order("first"), FailureKind.EFFECT, 1, Duration.ZERO, state("23505"));
        int meters = registry.getMeters().size();
        for (int i = 0; i < 100_000; i++) {
            TestDelivery<Order> delivery = TestDelivery.order("order-" + i);
            Failure failure = new Failure(
                    FailureKind.EFFECT,
                    new MessageKey("loyalty", "order-" + i),
                    "reason " + i,
                    null,
                    1,
                    Instant.EPOCH,
                    new IllegalStateException("text " + i));
            listener.onOutcome(delivery, new Outcome.Failed("loyalty", failure), Duration.ofMillis(1));
            listener.onSettled(delivery, Settlement.deadLetter("loyalty", failure));
            listener.onRetry(
                    delivery, FailureKind.EFFECT, i, Duration.ofMillis(i), state("Z%04X".formatted(i % 65536)));
        }
        assertThat(registry.getMeters()).hasSize(meters);
        assertThat(messages("failed")).isEqualTo(100_000);
        assertThat(count("onceflux.retries", "sqlstate.class", "other")).isEqualTo(100_001);
    }

    private static Throwable state(String sqlState) {
        return new IllegalStateException("wrapped", DatabaseErrors.withState(sqlState));
    }

    @Test
    void everyMeterAndItsTagsAreDocumented() {
        ConsumerListener listener = ConsumerMeters.in(registry).forConsumer("loyalty");
        listener.onBuilt(Consumers.loyalty(pool));
        listener.onRetry(TestDelivery.order("1"), FailureKind.EFFECT, 1, Duration.ZERO, state("23505"));

        Set<String> names = new TreeSet<>();
        for (Meter meter : registry.getMeters()) {
            Meter.Id id = meter.getId();
            if (id.getName().endsWith(".histogram")) {
                continue; // The buckets of a timer, as this registry has them.
            }
            ConsumerMeter documented = Arrays.stream(ConsumerMeter.values())
                    .filter(known -> known.getName().equals(id.getName()))
                    .findFirst()
                    .orElseThrow();
            assertThat(id.getType()).isEqualTo(documented.getType());
            assertThat(id.getTags().stream().map(Tag::getKey))
                    .containsExactlyInAnyOrderElementsOf(Arrays.stream(documented.getKeyNames())
                            .map(key -> key.asString())
                            .toList());
            names.add(id.getName());
        }
        assertThat(names)
                .isEqualTo(Arrays.stream(ConsumerMeter.values())
                        .map(ConsumerMeter::getName)
                        .collect(Collectors.toCollection(TreeSet::new)));
    }

    @Test
    void consumersShareARegistryAndListenersStandBesideEachOther() {
        RecordingListener own = new RecordingListener();
        ConsumerMeters meters = ConsumerMeters.in(registry);
        run(orders(Order::apply).listener(own).listener(meters).build(pool), TestDelivery.order("1"));
        run(Consumers.named("audit", Order::note).listener(meters).build(pool), TestDelivery.order("1"));

        assertThat(own.outcomes).hasSize(1);
        for (String consumer : List.of("loyalty", "audit")) {
            assertThat(registry.get("onceflux.messages")
                            .tags("consumer", consumer, "outcome", "applied")
                            .timer()
                            .count())
                    .isEqualTo(1);
        }
    }

    private long messages(String outcome) {
        return registry.get("onceflux.messages").tag("outcome", outcome).timer().count();
    }

    private double held(String kind) {
        return registry.get("onceflux.held").tag("kind", kind).gauge().value();
    }

    private double count(String name, String... tags) {
        return registry.get(name).tags(tags).counters().stream()
                .mapToDouble(Counter::count)
                .sum();
    }
}
