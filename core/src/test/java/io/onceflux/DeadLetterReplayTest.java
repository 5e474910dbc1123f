package io.onceflux;

import static io.onceflux.Consumers.policy;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.onceflux.postgres.DeadLetterTable;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.ConnectionFactoryMetadata;
import io.r2dbc.spi.R2dbcNonTransientResourceException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.reactivestreams.Publisher;
import org.springframework.transaction.annotation.Isolation;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/** A replay from the table goes on past what fails again, keeps it, and harms no message of today. */
class DeadLetterReplayTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final Decoder<byte[], Order> DECODER = body -> Order.of(new String(body, UTF_8));

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(10);
    private final RecordingListener listener = new RecordingListener();

    @BeforeEach
    void createTable() {
        DeadLetterTable.deadLetters().create(pool).block(LIMIT);
        database.run("TRUNCATE dead_letters");
    }

    /** Letters with the keys m1, m2 and so on. */
    private void keep(int letters) {
        database.run("""
                INSERT INTO dead_letters (consumer, message_key, message_id, origin, kind, reason, attempts, failed_at,
                                          header_names, header_values, body)
                SELECT 'loyalty', 'm' || n, 'm' || n, 'queue', 'PERMANENT', 'before', 1, now(), '{}', '{}',
                       convert_to('m' || n, 'UTF8')
                FROM generate_series(1, %d) AS n""".formatted(letters));
    }

    private IdempotentConsumer<Order> consumer(Effect<Order> effect) {
        return consumer(effect, pool, builder -> builder);
    }

    private IdempotentConsumer<Order> consumer(
            Effect<Order> effect, ConnectionFactory connections, UnaryOperator<ConsumerBuilder<Order>> settings) {
        return settings.apply(
                        Consumers.orders(effect).listener(listener).deadLetterTable(DeadLetterTable.deadLetters()))
                .build(connections);
    }

    private static Flux<DeadLetter> replay(IdempotentConsumer<Order> consumer, int perSecond) {
        return consumer.deadLetters(DECODER).replay(letter -> true, perSecond);
    }

    private static List<DeadLetter> replay(IdempotentConsumer<Order> consumer) {
        return Objects.requireNonNull(replay(consumer, 1_000).collectList().block(LIMIT));
    }

    private long kept(String where) {
        return database.count("SELECT count(*) FROM dead_letters WHERE " + where);
    }

    @Test
    void moreThanAnAlarmTakesFailAgainAndTheLastIsReachedAndNothingIsHeld() {
        keep(150);
        IdempotentConsumer<Order> consumer =
                consumer((order, db) -> order.id().equals("m150") || order.id().startsWith("live")
                        ? order.apply(db)
                        : db.sql("SELECT 1/0").then());
        Sinks.Many<Delivery<Order>> live = Sinks.many().unicast().onBackpressureBuffer();
        CompletableFuture<List<Outcome>> outcomes =
                live.asFlux().transform(consumer).collectList().toFuture();

        assertThat(replay(consumer)).extracting(DeadLetter::messageKey).containsExactly("m150");

        assertThat(kept("sqlstate = '22012' AND times = 2 AND kind = 'PERMANENT'"))
                .isEqualTo(149);
        assertThat(listener.held).isEmpty();
        assertThat(consumer.health().status()).isEqualTo(Health.Status.UP);
        live.tryEmitNext(TestDelivery.order("live")).orThrow();
        live.tryEmitComplete().orThrow();
        assertThat(outcomes)
                .succeedsWithin(LIMIT)
                .satisfies(all -> assertThat(all).singleElement().isInstanceOf(Outcome.Applied.class));
        database.assertAppliedOnce(2);
    }

    @Test
    void aLetterThatMeetsABrokenSetupStaysAndTheOthersGoOnAtOnce() {
        keep(5);
        IdempotentConsumer<Order> consumer = consumer((order, db) -> order.id().equals("m2")
                ? db.sql("INSERT INTO nowhere VALUES (1)").then()
                : order.apply(db));

        assertThat(replay(consumer)).extracting(DeadLetter::messageKey).containsExactly("m1", "m3", "m4", "m5");

        assertThat(database.texts("SELECT message_key || ' ' || kind || ' ' || sqlstate FROM dead_letters"))
                .containsExactly("m2 BROKEN_SETUP 42P01");
        assertThat(listener.held).isEmpty();
        assertThat(consumer.health().status()).isEqualTo(Health.Status.UP);
        database.assertAppliedOnce(4);
    }

    @Test
    void aLetterThatAloneFailsAsInfrastructureStaysWhenItsTimeIsUp() {
        keep(2);
        IdempotentConsumer<Order> consumer = consumer(
                (order, db) -> order.id().equals("m1")
                        ? db.sql("DO $$ BEGIN RAISE SQLSTATE '53400'; END $$").then()
                        : order.apply(db),
                pool,
                builder -> builder.processBudget(Duration.ofMillis(500)));

        assertThat(replay(consumer)).extracting(DeadLetter::messageKey).containsExactly("m2");

        assertThat(database.texts("SELECT message_key || ' ' || times FROM dead_letters"))
                .containsExactly("m1 2");
        assertThat(consumer.health().status()).isEqualTo(Health.Status.UP);
    }

    @Test
    void anOutageEndsTheReplayAndWhatIsToldIsGoneAndTheRestIsAsItWas() {
        keep(60);
        AtomicBoolean away = new AtomicBoolean();
        IdempotentConsumer<Order> consumer = consumer(
                (order, db) -> order.apply(db).doOnSuccess(done -> {
                    if (order.id().equals("m30")) {
                        away.set(true);
                    }
                }),
                awayWhen(away),
                builder -> builder.processBudget(Duration.ofMillis(300)));
        List<DeadLetter> given = new CopyOnWriteArrayList<>();
        CompletableFuture<Void> told =
                replay(consumer, 1_000).doOnNext(given::add).then().toFuture();

        assertThat(told).failsWithin(LIMIT);
        assertThat(given).hasSizeBetween(29, 30);
        assertThat(kept("true")).isEqualTo(60 - given.size());
        assertThat(kept("times > 1 OR reason <> 'before'")).isZero();

        away.set(false);
        assertThat(replay(consumer)).hasSize(60 - given.size());
        assertThat(kept("true")).isZero();
        database.assertAppliedOnce(60);
    }

    @Test
    void anOutageBeforeALetterEndsTheReplayWithASentenceAndLeavesIt() {
        keep(2);
        AtomicBoolean away = new AtomicBoolean();
        IdempotentConsumer<Order> consumer = consumer(
                (order, db) -> Mono.error(() -> {
                    away.set(true);
                    return new R2dbcNonTransientResourceException("away", "08006");
                }),
                awayWhen(away),
                builder -> builder.processBudget(Duration.ofMillis(300)));

        assertThat(replay(consumer, 1_000).collectList().toFuture())
                .failsWithin(LIMIT)
                .withThrowableOfType(ExecutionException.class)
                .withCauseInstanceOf(IllegalStateException.class)
                .withMessageContaining("the replay has ended, because the database does not take dead letter");
        assertThat(kept("times = 1 AND reason = 'before'")).isEqualTo(2);
    }

    /** Takes no new connection while it is away; what has one goes on. */
    private ConnectionFactory awayWhen(AtomicBoolean away) {
        return new ConnectionFactory() {
            @Override
            public Publisher<? extends Connection> create() {
                return Mono.defer(() -> away.get()
                        ? Mono.error(new R2dbcNonTransientResourceException("away", "08006"))
                        : pool.create());
            }

            @Override
            public ConnectionFactoryMetadata getMetadata() {
                return pool.getMetadata();
            }
        };
    }

    @Test
    void aStopEndsTheReplayWithAnErrorAndAReplayAfterwardsIsRefused() {
        keep(200);
        IdempotentConsumer<Order> consumer = consumer((order, db) -> order.apply(db));
        List<DeadLetter> given = new CopyOnWriteArrayList<>();
        CompletableFuture<Void> replayed =
                replay(consumer, 100).doOnNext(given::add).then().toFuture();
        await().until(() -> given.size() > 3);
        consumer.stop().block(LIMIT);

        assertThat(replayed)
                .failsWithin(LIMIT)
                .withThrowableOfType(ExecutionException.class)
                .withMessageContaining("the consumer loyalty ")
                .withMessageContaining("stopped");
        assertThat(kept("true")).isEqualTo(200 - given.size());
        database.assertAppliedOnce(given.size());
        assertThat(replay(consumer, 100).collectList().toFuture())
                .failsWithin(LIMIT)
                .withThrowableOfType(ExecutionException.class)
                .withMessageContaining("the consumer loyalty has been stopped");
    }

    @Test
    void lettersWithoutAKeyThatFailAgainInTwoReplaysAtOnceKeepOneRowEach() {
        keep(20);
        database.run("UPDATE dead_letters SET message_key = NULL, message_id = NULL");
        IdempotentConsumer<Order> consumer = consumer((order, db) -> order.apply(db));

        assertThat(Flux.merge(replay(consumer, 1_000), replay(consumer, 1_000))
                        .collectList()
                        .block(LIMIT))
                .isEmpty();
        assertThat(kept("true")).isEqualTo(20);
        assertThat(kept("times > 1 AND reason = 'the message has no id'")).isEqualTo(20);
    }

    @Test
    void twoReplaysAtOnceGiveEachLetterBackOnceBetweenThem() {
        keep(60);
        IdempotentConsumer<Order> consumer =
                consumer((order, db) -> order.apply(db), pool, builder -> builder.isolation(Isolation.REPEATABLE_READ));

        assertThat(Flux.merge(replay(consumer, 1_000), replay(consumer, 1_000))
                        .map(DeadLetter::messageKey)
                        .collectList()
                        .block(LIMIT))
                .hasSize(60)
                .doesNotHaveDuplicates();
        assertThat(kept("true")).isZero();
        database.assertAppliedOnce(60);
    }

    @Test
    void anOddRowOfAnotherReleaseIsListedAndReplayedWithTheOthers() {
        keep(5);
        database.run("""
                UPDATE dead_letters SET kind = 'KIND_OF_A_LATER_RELEASE' WHERE message_key = 'm1';
                UPDATE dead_letters SET header_names = '{a,b}', header_values = '{1}' WHERE message_key = 'm2';
                UPDATE dead_letters SET header_names = '{a,NULL}', header_values = '{NULL,2,3}' WHERE message_key = 'm3';
                UPDATE dead_letters SET header_names = '{{a},{b}}', failed_at = 'infinity' WHERE message_key = 'm4'""");
        IdempotentConsumer<Order> consumer =
                consumer((order, db) -> order.apply(db), pool, builder -> builder.failurePolicy(policy().build()));
        List<DeadLetter> letters = Objects.requireNonNull(
                consumer.deadLetters(DECODER).list().collectList().block(LIMIT));

        assertThat(letters).extracting(DeadLetter::messageKey).containsExactly("m1", "m2", "m3", "m4", "m5");
        assertThat(letters.get(0).kind()).isNull();
        assertThat(letters.get(1).headers()).isEqualTo(Map.of("a", "1"));
        assertThat(letters.get(2).headers()).isEqualTo(Map.of("a", "null", "null", "2"));
        assertThat(letters.get(3).headers()).isEmpty();
        assertThat(replay(consumer)).hasSize(5);
        database.assertAppliedOnce(5);
    }
}
