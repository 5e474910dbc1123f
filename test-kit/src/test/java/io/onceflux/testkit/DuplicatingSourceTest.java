package io.onceflux.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.onceflux.ConsumerBuilder;
import io.onceflux.FailurePolicy;
import io.onceflux.IdempotentConsumer;
import io.onceflux.Outcome;
import io.onceflux.PermanentFailure;
import io.onceflux.Settlement;
import io.r2dbc.spi.ConnectionFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Mono;

class DuplicatingSourceTest {

    private static final Duration LIMIT = Duration.ofSeconds(20);

    private static List<String> numbers(int count) {
        return IntStream.range(0, count).mapToObj(n -> "A-" + n).toList();
    }

    private static ConsumerBuilder<String> consumer() {
        return IdempotentConsumer.<String>named("loyalty")
                .identifiedBy(number -> number)
                .lanes(4)
                .failurePolicy(FailurePolicy.builder()
                        .backoff(Duration.ofMillis(1), Duration.ofMillis(20))
                        .build());
    }

    private static List<Outcome> run(DuplicatingSource<String> source, IdempotentConsumer<String> consumer) {
        return Objects.requireNonNull(
                source.deliveries().transform(consumer).collectList().block(LIMIT));
    }

    /** Effects that are not in the transaction, counted: each commit of a claim has one that was not rolled back. */
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5})
    void inMemoryEveryMessageIsAppliedOnceWhateverBreaks(long seed) {
        InMemoryDatabase database = InMemoryDatabase.empty();
        DuplicatingSource<String> source = DuplicatingSource.of(numbers(200))
                .seed(seed)
                .copies(4)
                .reordering(20)
                .breaking(0.1);
        List<Outcome> outcomes = run(
                source,
                consumer()
                        .claims(database.claims())
                        .effect((number, db) -> Mono.empty())
                        .build(source.crashing(database)));

        Map<Object, Long> applied = outcomes.stream()
                .filter(Outcome.Applied.class::isInstance)
                .collect(Collectors.groupingBy(Outcome::key, Collectors.counting()));
        assertThat(applied.values()).containsOnly(1L);
        assertThat(applied.size()).isBetween(150, 200); // Of the others, the answer of COMMIT was lost.
        assertThat(source.broken()).isPositive();
        assertThat(source.delivered()).isGreaterThan(400);
    }

    @ParameterizedTest
    @EnumSource(Step.class)
    void inPostgresEveryMessageIsAppliedOnceWhateverBreaks(Step step) {
        try (TestDatabase database = new TestDatabase()) {
            DuplicatingSource<String> source = DuplicatingSource.of(numbers(300))
                    .seed(step.name().hashCode())
                    .copies(3)
                    .reordering(10)
                    .breaking(0.1, step);
            ConnectionFactory crashing = source.crashing(database.pool);
            List<Outcome> outcomes = run(
                    source,
                    consumer()
                            .claimTable(TestDatabase.CLAIMS)
                            .effect((number, db) -> db.sql("INSERT INTO ledger VALUES (:number)")
                                    .bind("number", number)
                                    .then())
                            .build(crashing));

            assertThat(outcomes).allMatch(Outcome::isDone);
            assertThat(source.broken()).isPositive();
            assertThat(database.count("ledger").block(LIMIT)).isEqualTo(300);
            assertThat(database.count("(SELECT DISTINCT number FROM ledger) AS numbers")
                            .block(LIMIT))
                    .isEqualTo(300);
        }
    }

    @Test
    void withoutAClaimTheSameSourceShowsTheFault() {
        try (TestDatabase database = new TestDatabase()) {
            DuplicatingSource<String> source = DuplicatingSource.of(numbers(50)).copies(3);
            run(
                    source,
                    consumer()
                            .withoutClaims()
                            .effect((number, db) -> db.sql("INSERT INTO ledger VALUES (:number)")
                                    .bind("number", number)
                                    .then())
                            .build(database.pool));
            assertThat(database.count("ledger").block(LIMIT)).isGreaterThan(50);
        }
    }

    @Test
    void theSeedDecidesAboutCopiesAndOrder() {
        List<List<String>> runs = new ArrayList<>();
        for (long seed : List.of(7L, 7L, 8L)) {
            runs.add(DuplicatingSource.of(numbers(30))
                    .seed(seed)
                    .copies(3)
                    .reordering(5)
                    .deliveries()
                    .concatMap(delivery ->
                            delivery.settle(Settlement.acknowledge()).thenReturn(delivery.payload()))
                    .collectList()
                    .block(LIMIT));
        }
        assertThat(runs.get(0)).isEqualTo(runs.get(1)).isNotEqualTo(runs.get(2)).hasSizeGreaterThan(30);
        assertThat(runs.get(0)).isNotEqualTo(runs.get(0).stream().sorted().toList());
    }

    @Test
    void whatIsGivenUpIsKeptAndEndsTheFluxToo() {
        InMemoryDatabase database = InMemoryDatabase.empty();
        Map<String, Integer> sent = new ConcurrentHashMap<>();
        DuplicatingSource<String> source = DuplicatingSource.of(numbers(5)).copies(1);
        run(
                source,
                consumer()
                        .claims(database.claims())
                        .effect((number, db) -> {
                            sent.merge(number, 1, Integer::sum);
                            return number.equals("A-3") ? Mono.error(new PermanentFailure("no")) : Mono.empty();
                        })
                        .build(database));
        assertThat(source.deadLetters())
                .singleElement()
                .satisfies(failure -> assertThat(failure.reason()).isEqualTo("no"));
        assertThat(sent).hasSize(5);
    }

    @Test
    void valuesThatMakeNoSenseAreRefused() {
        DuplicatingSource<String> source = DuplicatingSource.of(numbers(1));
        assertThatThrownBy(() -> source.copies(0)).hasMessage("copies must be at least 1, but is 0");
        assertThatThrownBy(() -> source.reordering(0)).hasMessage("reordering must be at least 1, but is 0");
        assertThatThrownBy(() -> source.breaking(1)).hasMessageContaining("less than 1");
        assertThat(run(
                        DuplicatingSource.of(List.of()),
                        consumer()
                                .claims(InMemoryDatabase.empty().claims())
                                .effect((number, db) -> Mono.empty())
                                .build(InMemoryDatabase.empty())))
                .isEmpty();
    }
}
