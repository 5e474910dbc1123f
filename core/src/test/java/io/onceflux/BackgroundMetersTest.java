package io.onceflux;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.docs.MeterDocumentation;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.onceflux.micrometer.RelayMeter;
import io.onceflux.micrometer.RelayMeters;
import io.onceflux.micrometer.RetentionMeter;
import io.onceflux.micrometer.RetentionMeters;
import io.onceflux.outbox.Outbox;
import io.onceflux.outbox.OutboxEntry;
import io.onceflux.outbox.Relay;
import io.onceflux.outbox.RelayListener;
import io.onceflux.outbox.Relayed;
import io.onceflux.postgres.ClaimTable;
import io.onceflux.postgres.OutboxTable;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.spi.Connection;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** The meters of what runs beside consumers: retention and relay. */
class BackgroundMetersTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(12);

    @AutoClose
    private final SimpleMeterRegistry registry = new SimpleMeterRegistry();

    private Retention retention() {
        return Retention.of(ClaimTable.processedMessages(), Duration.ofDays(7))
                .pause(Duration.ZERO)
                .batchSize(1_000);
    }

    private void oldClaims(int count) {
        database.run(
                "INSERT INTO processed_messages SELECT 'loyalty', n, now() - interval '8 days' FROM generate_series(1, %d) n"
                        .formatted(count));
    }

    @Test
    void whatARetentionRemovesItsRunsAndFailuresAreCounted() {
        Retention watched = retention().listener(RetentionMeters.in(registry));
        assertThat(counter("onceflux.retention.removed")).isZero();
        assertThat(gauge("onceflux.retention.done")).isEqualTo(1);

        oldClaims(2_500);
        watched.run(pool).then().block(LIMIT);
        oldClaims(10);
        watched.run(pool).then().block(LIMIT);
        assertThat(counter("onceflux.retention.removed")).isEqualTo(2_510);
        assertThat(counter("onceflux.retention.runs")).isEqualTo(2);
        assertThat(counter("onceflux.retention.failures")).isZero();

        Retention nowhere =
                Retention.of(ClaimTable.named("nowhere"), Duration.ofDays(7)).listener(RetentionMeters.in(registry));
        assertThatThrownBy(() -> nowhere.run(pool).then().block(LIMIT)).isInstanceOf(InvalidSetupException.class);
        assertThat(registry.get("onceflux.retention.failures")
                        .tag("table", "nowhere")
                        .counter()
                        .count())
                .isEqualTo(1);
        assertDocumented(RetentionMeter.values());
    }

    @Test
    void theShareOfARetentionThatIsDoneCanBeSeen() {
        oldClaims(2_500);
        List<Double> shares = new CopyOnWriteArrayList<>();
        retention()
                .listener(RetentionMeters.in(registry))
                .run(pool)
                .doOnNext(progress -> shares.add(gauge("onceflux.retention.done")))
                .then()
                .block(LIMIT);
        assertThat(shares).isSorted().hasSizeGreaterThan(2).last().isEqualTo(1.0);
    }

    @Test
    void aListenerThatThrowsChangesNothingForARetention() {
        oldClaims(10);
        RetentionListener broken = new RetentionListener() {
            @Override
            public void onProgress(long removed, double done) {
                throw new AssertionError("broken");
            }
        };
        retention().listener(broken).run(pool).then().block(LIMIT);
        assertThat(database.claims()).isZero();
    }

    @Test
    void whatARelaySendsAndHowOldItsOutboxIsAreMeasured() {
        OutboxTable table = OutboxTable.outbox();
        table.create(pool).block(LIMIT);
        database.run("TRUNCATE outbox");
        Outbox outbox = Outbox.in(table);
        append(outbox, OutboxEntry.of("mail", "good", new byte[0]));
        append(outbox, OutboxEntry.of("mail", "bad", new byte[0]));
        append(outbox, OutboxEntry.of("nobodys", "any", new byte[0]));
        database.run("UPDATE outbox SET appended_at = now() - interval '1 hour'");
        List<Relayed> relayed = new CopyOnWriteArrayList<>();
        RelayListener broken = new RelayListener() {
            @Override
            public void onRelayed(Relayed one) {
                throw new AssertionError("broken");
            }
        };
        Relay relay = Relay.of(outbox)
                .to(
                        "mail",
                        message -> message.key().equals("bad")
                                ? Mono.error(new IllegalStateException("no"))
                                : Mono.empty())
                .maxAttempts(2)
                .backoff(Duration.ofMillis(10), Duration.ofMillis(10))
                .pollInterval(Duration.ofMillis(50))
                .listener(broken)
                .listener(RelayMeters.in(registry))
                .build(pool);
        assertThat(gauge("onceflux.outbox.pending")).isZero();
        Disposable running = relay.run().subscribe(relayed::add);

        await().untilAsserted(() -> assertThat(relayed).hasSize(3));
        assertThat(registry.get("onceflux.relay.sent").timer().count()).isEqualTo(1);
        assertThat(registry.get("onceflux.relay.sent").timer().max(TimeUnit.MINUTES))
                .isBetween(59.0, 62.0);
        assertThat(counter("onceflux.relay.failures")).isEqualTo(1);
        assertThat(counter("onceflux.relay.parked")).isEqualTo(1);
        relay.stop().block(LIMIT);
        running.dispose();

        Relay next = Relay.of(outbox) // It shares what the gauges look at with the one before.
                .to("mail", message -> Mono.empty())
                .listener(RelayMeters.in(registry))
                .build(pool);
        Disposable again = next.run().subscribe();
        await().untilAsserted(() -> assertThat(gauge("onceflux.outbox.pending")).isEqualTo(1));
        next.stop().block(LIMIT);
        again.dispose();
        assertThat(gauge("onceflux.outbox.parked")).isEqualTo(1);
        assertThat(registry.get("onceflux.outbox.age").timeGauge().value(TimeUnit.MINUTES))
                .isBetween(59.0, 62.0);
        assertDocumented(RelayMeter.values());
    }

    private void append(Outbox outbox, OutboxEntry entry) {
        Flux.usingWhen(
                        database.direct().create(),
                        connection -> outbox.appendAs(connection, entry.key(), entry),
                        Connection::close)
                .then()
                .block(LIMIT);
    }

    private double counter(String name) {
        return registry.get(name).counter().count();
    }

    private double gauge(String name) {
        return registry.get(name).gauge().value();
    }

    private void assertDocumented(MeterDocumentation... all) {
        for (Meter meter : registry.getMeters()) {
            if (meter.getId().getName().endsWith(".histogram")) {
                continue; // The buckets of a timer, as this registry has them.
            }
            MeterDocumentation documented = Stream.of(all)
                    .filter(known -> known.getName().equals(meter.getId().getName()))
                    .findFirst()
                    .orElseThrow(() -> new AssertionError(meter.getId() + " is not documented"));
            assertThat(meter.getId().getType()).isEqualTo(documented.getType());
            assertThat(meter.getId().getTags())
                    .extracting(tag -> tag.getKey())
                    .containsExactlyInAnyOrderElementsOf(Arrays.stream(documented.getKeyNames())
                            .map(key -> key.asString())
                            .toList());
        }
        assertThat(registry.getMeters())
                .extracting(meter -> meter.getId().getName())
                .containsAll(Arrays.stream(all).map(MeterDocumentation::getName).toList());
    }
}
