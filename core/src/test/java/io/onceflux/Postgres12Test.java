package io.onceflux;

import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.run;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.onceflux.postgres.Buckets;
import io.onceflux.postgres.ClaimTable;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.spi.Connection;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.r2dbc.connection.SingleConnectionFactory;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.publisher.Mono;

/** What is otherwise on the oldest PostgreSQL that is supported. The build runs this, and some others, on a server of that version. */
class Postgres12Test {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final ClaimTable DAILY = ClaimTable.named("claims").partitionedBy(Buckets.daily());

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(12);

    private static Retention keep(int days) {
        return Retention.of(DAILY, Duration.ofDays(days));
    }

    private IdempotentConsumer<Order> consumer() {
        return orders(Order::apply)
                .claimTable(DAILY)
                .bucketedBy(order -> Instant.now())
                .build(pool);
    }

    private long partitions() {
        return database.count("SELECT count(*) FROM pg_inherits WHERE inhparent = 'claims'::regclass");
    }

    @Test
    void theServerIsTheOldest() {
        assertThat(database.texts("SHOW server_version_num")).first().asString().startsWith("12");
    }

    /** There a partition is taken out with a lock of the whole table: claims wait behind it, for as long as it waits itself. */
    @Test
    void claimsGoOnWhileAPartitionCannotBeTakenOutAndItIsTakenOutWhenItCan() {
        DAILY.create(pool).block(LIMIT);
        keep(5).run(pool).then().block(LIMIT);
        Connection holder =
                Objects.requireNonNull(Mono.from(database.direct().create()).block(LIMIT));
        try {
            Mono.from(holder.beginTransaction()).block(LIMIT);
            Instant oldest = Instant.now().truncatedTo(ChronoUnit.DAYS).minus(Duration.ofDays(5));
            DatabaseClient.create(new SingleConnectionFactory(
                            holder, database.direct().getMetadata(), true))
                    .sql("INSERT INTO claims VALUES ('other', 'slow', now(), '"
                            + oldest.toString().substring(0, 10) + "')")
                    .then()
                    .block(LIMIT);
            CompletableFuture<Void> cleaning = keep(2).run(pool).then().toFuture();
            await().until(() -> database.count("SELECT count(*) FROM pg_stat_activity WHERE query LIKE"
                            + " 'ALTER TABLE%DETACH%' AND wait_event_type = 'Lock'")
                    == 1);

            assertThat(run(consumer(), TestDelivery.orders("m", 200))).allMatch(Outcome.Applied.class::isInstance);

            assertThatThrownBy(() -> cleaning.orTimeout(60, TimeUnit.SECONDS).join())
                    .satisfies(error -> assertThat(SqlStates.stateOf(error)).isEqualTo("55P03"));
            assertThat(partitions()).isEqualTo(10);
        } finally {
            Mono.from(holder.close()).block(LIMIT);
        }
        keep(2).run(pool).then().block(LIMIT);

        assertThat(partitions()).isEqualTo(7);
        assertThat(database.count("SELECT count(*) FROM claims")).isEqualTo(200);
    }
}
