package io.onceflux;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.onceflux.postgres.DeadLetterTable;
import io.r2dbc.pool.ConnectionPool;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** The rights that docs/security.md says are enough, and that each of them is needed. */
class RoleRightsTest {

    private static final Duration LIMIT = Duration.ofSeconds(20);
    private static final Decoder<byte[], Order> DECODER = body -> Order.of(new String(body, UTF_8));

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final DeadLetterTable table = DeadLetterTable.deadLetters();
    private final String role = "consumer_" + ProcessHandle.current().pid() + "_" + System.nanoTime();

    @BeforeEach
    void createRole() {
        database.run(table.createSql());
        database.run("""
                TRUNCATE dead_letters;
                CREATE ROLE %1$s LOGIN PASSWORD 'secret';
                REVOKE ALL ON SCHEMA public FROM PUBLIC;
                GRANT USAGE ON SCHEMA public TO %1$s;
                GRANT SELECT, INSERT ON processed_messages TO %1$s;
                GRANT SELECT, INSERT, UPDATE ON balances TO %1$s;
                GRANT INSERT ON point_ledger TO %1$s;
                GRANT SELECT, INSERT, UPDATE, DELETE ON dead_letters TO %1$s""".formatted(role));
    }

    @AfterEach
    void dropRole() {
        database.closePools();
        database.run("DROP OWNED BY %1$s; DROP ROLE %1$s".formatted(role));
    }

    private ConnectionPool poolOfRole() {
        return database.pool(6, database.configuration().username(role).password("secret"));
    }

    private IdempotentConsumer<Order> consumer(ConnectionPool pool) {
        return Consumers.orders((order, db) ->
                        order.id().equals("bad") ? Mono.error(new PermanentFailure("not this one")) : order.apply(db))
                .deadLetterTable(table)
                .build(pool);
    }

    private List<Outcome> handle(IdempotentConsumer<Order> consumer, String... ids) {
        return Objects.requireNonNull(Flux.just(ids)
                .<Delivery<byte[]>>map(BodyDelivery::new)
                .map(Delivery.decoding(DECODER))
                .transform(consumer)
                .collectList()
                .block(LIMIT));
    }

    @Test
    void aRoleThatMayOnlySelectAndInsertClaimsAndDoWhatTheEffectDoesHasAllThatIsNeeded() {
        IdempotentConsumer<Order> consumer = consumer(poolOfRole());
        assertThat(handle(consumer, "1", "2", "1", "bad"))
                .extracting(outcome -> outcome.getClass().getSimpleName())
                .containsExactlyInAnyOrder("Applied", "Applied", "Duplicate", "Failed");
        assertThat(consumer.deadLetters(DECODER).list().collectList().block(LIMIT))
                .extracting(DeadLetter::reason)
                .containsExactly("not this one");

        IdempotentConsumer<Order> mended =
                Consumers.orders(Order::apply).deadLetterTable(table).build(poolOfRole());
        assertThat(mended.deadLetters(DECODER)
                        .replay(letter -> true, 100)
                        .collectList()
                        .block(LIMIT))
                .hasSize(1);
        assertThat(database.count("SELECT count(*) FROM dead_letters")).isZero();
        assertThat(database.count("SELECT count(*) FROM pg_roles WHERE rolname = '" + role
                        + "' AND NOT rolsuper AND NOT rolcreatedb AND NOT rolcreaterole"))
                .isOne();
        database.assertAppliedOnce(3);
    }

    @ParameterizedTest
    @CsvSource({
        "SELECT, processed_messages",
        "INSERT, processed_messages",
        "SELECT, dead_letters",
        "INSERT, dead_letters",
        "UPDATE, dead_letters",
        "DELETE, dead_letters"
    })
    void withoutOneOfTheRightsTheConsumerDoesNotStartAndSaysWhichTable(String right, String of) {
        database.run("REVOKE %s ON %s FROM %s".formatted(right, of, role));
        assertThat(org.assertj.core.api.Assertions.catchThrowable(() -> handle(consumer(poolOfRole()), "1")))
                .isInstanceOf(InvalidSetupException.class)
                .hasMessageContaining(of)
                .hasMessageContaining(right);
        database.assertAppliedOnce(0);
    }

    /** A message with bytes, as a broker delivers it. */
    private record BodyDelivery(String id, List<Settlement> settlements) implements Delivery<byte[]> {

        BodyDelivery(String id) {
            this(id, new CopyOnWriteArrayList<>());
        }

        @Override
        public byte[] payload() {
            return id.getBytes(UTF_8);
        }

        @Override
        public byte[] body() {
            return payload();
        }

        @Override
        public Map<String, String> headers() {
            return Map.of();
        }

        @Override
        public Mono<Void> settle(Settlement settlement) {
            return Mono.fromRunnable(() -> settlements.add(settlement));
        }
    }
}
