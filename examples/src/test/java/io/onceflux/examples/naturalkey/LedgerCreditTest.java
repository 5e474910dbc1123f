package io.onceflux.examples.naturalkey;

import static org.assertj.core.api.Assertions.assertThat;

import io.onceflux.Delivery;
import io.onceflux.IdempotentConsumer;
import io.onceflux.Outcome;
import io.onceflux.examples.loyalty.OrderCompleted;
import io.onceflux.services.PostgresService;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.pool.ConnectionPoolConfiguration;
import io.r2dbc.spi.ConnectionFactories;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.publisher.Flux;

class LedgerCreditTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);

    private final PostgresService postgres = PostgresService.shared();
    private final ConnectionPool pool = new ConnectionPool(
            ConnectionPoolConfiguration.builder(ConnectionFactories.get(postgres.r2dbcUrl(postgres.newDatabase())))
                    .maxSize(20)
                    .build());
    private final DatabaseClient db = DatabaseClient.create(pool);

    @AfterEach
    void close() {
        pool.disposeLater().block(LIMIT);
    }

    private long number(String sql) {
        return Objects.requireNonNull(db.sql(sql)
                .map(row -> Objects.requireNonNull(row.get(0, Long.class)))
                .one()
                .block(LIMIT));
    }

    @Test
    void anOrderIsCreditedOnceAndAnUnknownCustomerIsNoDuplicate() {
        db.sql(LedgerCredit.SCHEMA).then().block(LIMIT);
        db.sql("INSERT INTO accounts VALUES ('C-1')").then().block(LIMIT);
        IdempotentConsumer<OrderCompleted> consumer = LedgerCredit.consumer(pool);
        List<Outcome> outcomes = Objects.requireNonNull(Flux.fromStream(
                        IntStream.range(0, 100).mapToObj(i -> new OrderCompleted("A-" + i % 25, "C-1", 10)))
                .map(order -> Delivery.of(null, order))
                .transform(consumer)
                .collectList()
                .block(LIMIT));

        assertThat(outcomes).filteredOn(Outcome.Applied.class::isInstance).hasSize(25);
        assertThat(outcomes).filteredOn(Outcome.Duplicate.class::isInstance).hasSize(75);
        assertThat(number("SELECT points FROM accounts")).isEqualTo(250);
        assertThat(consumer.process(Delivery.of(null, new OrderCompleted("A-1000", "nobody", 10)))
                        .block(LIMIT))
                .isInstanceOf(Outcome.Failed.class);
        assertThat(number("SELECT count(*) FROM entries")).isEqualTo(25);
    }
}
