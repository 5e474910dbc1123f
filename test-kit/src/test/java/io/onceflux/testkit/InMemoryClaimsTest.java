package io.onceflux.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.onceflux.Claims;
import io.onceflux.Claims.Claim;
import io.onceflux.Delivery;
import io.onceflux.IdempotentConsumer;
import io.onceflux.MessageKey;
import io.onceflux.Outcome;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;

class InMemoryClaimsTest extends ClaimsContract {

    private static final Duration LIMIT = Duration.ofSeconds(30);

    private final InMemoryDatabase database = InMemoryDatabase.empty();

    @Override
    protected Claims claims() {
        return database.claims();
    }

    @Override
    protected ConnectionFactory connections() {
        return database;
    }

    @Test
    void aConsumerWorksOnItAndItsHealthIsUp() {
        AtomicInteger applied = new AtomicInteger();
        IdempotentConsumer<String> consumer = IdempotentConsumer.<String>named("loyalty")
                .identifiedBy(message -> message)
                .claims(database.claims())
                .effect((message, db) -> Mono.fromRunnable(applied::incrementAndGet))
                .build(database);
        assertThat(consumer.process(Delivery.of(null, "a")).block(LIMIT)).isInstanceOf(Outcome.Applied.class);
        assertThat(consumer.process(Delivery.of(null, "a")).block(LIMIT)).isInstanceOf(Outcome.Duplicate.class);
        assertThat(applied).hasValue(1);
        assertThat(consumer.health().troubles()).isEmpty();
    }

    @Test
    void aStatementIsRefusedWithASentence() {
        IdempotentConsumer<String> consumer = IdempotentConsumer.<String>named("loyalty")
                .identifiedBy(message -> message)
                .claims(database.claims())
                .effect((message, db) -> db.sql("INSERT INTO ledger VALUES (1)").then())
                .build(database);
        assertThat(consumer.process(Delivery.of(null, "a")).block(LIMIT))
                .isInstanceOfSatisfying(
                        Outcome.Failed.class,
                        failed -> assertThat(failed.failure().reason())
                                .contains("an InMemoryDatabase has no SQL")
                                .contains("INSERT INTO ledger"));
    }

    @Test
    void claimsNeedATransactionAndAConnectionOfTheDatabase() {
        Connection without = Objects.requireNonNull(database.create().block(LIMIT));
        List<Claim> one = List.of(new Claim(new MessageKey("c", "a")));
        assertThatThrownBy(() -> claims().claim(without, one, LIMIT).then().block(LIMIT))
                .hasMessageContaining("needs a transaction");
        try (TestDatabase postgres = new TestDatabase()) {
            assertThatThrownBy(() -> Mono.usingWhen(
                                    postgres.pool.create(),
                                    connection -> claims().claim(connection, one, LIMIT),
                                    Connection::close)
                            .then()
                            .block(LIMIT))
                    .hasMessageContaining("give it to build(...), too");
        }
    }
}
