package io.onceflux.testkit;

import static io.onceflux.testkit.OnceFluxAssertions.assertRollsBack;
import static io.onceflux.testkit.OnceFluxAssertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.onceflux.Effect;
import io.onceflux.IdempotentConsumer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.springframework.r2dbc.core.DatabaseClient;
import reactor.core.Disposable;
import reactor.core.publisher.Mono;
import reactor.util.context.Context;

/** Each assertion passes for what is right, and says what is wrong with the rest. */
class AssertionsTest {

    @AutoClose
    private final TestDatabase database = new TestDatabase();

    private static final Effect<String> CREDIT = (customer, db) -> db.sql(
                    "INSERT INTO points VALUES (:customer, 10) ON CONFLICT (customer) DO UPDATE SET points = points.points + 10")
            .bind("customer", customer)
            .then();

    private static Mono<Void> enter(String number, DatabaseClient db) {
        return db.sql("INSERT INTO ledger VALUES (:number)")
                .bind("number", number)
                .then();
    }

    private IdempotentConsumer<String> consumer(Effect<String> effect) {
        return IdempotentConsumer.<String>named("loyalty")
                .identifiedBy(message -> message)
                .claimTable(TestDatabase.CLAIMS)
                .effect(effect)
                .build(database.pool);
    }

    private IdempotentConsumer<String> withoutClaims(Effect<String> effect) {
        return IdempotentConsumer.<String>named("loyalty")
                .identifiedBy(message -> message)
                .withoutClaims()
                .effect(effect)
                .build(database.pool);
    }

    @Test
    void aConsumerWithClaimsAppliesOnce() {
        assertThat(consumer(CREDIT)).appliesOnce("anna").appliesOnce("bert");
        assertThat(consumer(CREDIT)).leavesTheSame(database.count("points WHERE points = 10"), "cora");
    }

    @Test
    void oneWithoutDoesNot() {
        assertThatThrownBy(() -> assertThat(withoutClaims(CREDIT)).appliesOnce("anna"))
                .isInstanceOf(AssertionError.class)
                .hasMessageContaining("to apply anna once of 11 times, but it applied it 11 times");
        assertThatThrownBy(() ->
                        assertThat(withoutClaims(AssertionsTest::enter)).leavesTheSame(database.count("ledger"), "A-1"))
                .isInstanceOf(AssertionError.class)
                .hasMessageContaining("Expected copies of A-1 to change nothing")
                .hasMessageContaining("12");
    }

    @Test
    void settingAValueLeavesTheSameWithoutAClaim() {
        Effect<String> set = (customer, db) -> db.sql(
                        "INSERT INTO points VALUES (:customer, 7) ON CONFLICT (customer) DO UPDATE SET points = 7")
                .bind("customer", customer)
                .then();
        assertThat(withoutClaims(set)).leavesTheSame(database.count("points WHERE points = 7"), "anna");
    }

    @Test
    void aMessageThatCannotBeAppliedIsNoProof() {
        assertThatThrownBy(() -> assertThat(consumer((message, db) -> Mono.error(new IllegalStateException("sick"))))
                        .appliesOnce("anna"))
                .isInstanceOf(AssertionError.class)
                .hasMessageContaining("to be applied, but it became Failed");
    }

    @Test
    void anEffectOnItsOwnClientRollsBack() {
        assertThat(CREDIT).on(database.pool).rollsBack("anna");
        assertRollsBack(AssertionsTest::enter, "A-1", database.pool);
    }

    @Test
    void oneOnAnotherClientDoesNot() {
        DatabaseClient own = DatabaseClient.create(database.pool);
        Effect<String> outside = (number, db) -> enter(number, db).then(elsewhere(own, number));
        assertThatThrownBy(() -> assertThat(outside).on(database.pool).rollsBack("A-1"))
                .isInstanceOf(AssertionError.class)
                .hasMessageContaining("table public.ledger has 1 rows instead of 0")
                .hasMessageContaining("Use the client that the effect is given");
    }

    /** In the Reactor context of the effect it would join the transaction. */
    private static Mono<Void> elsewhere(DatabaseClient own, String number) {
        return enter(number, own).contextWrite(context -> Context.empty());
    }

    @Test
    void oneThatNobodyWaitsForDoesNotEither() {
        DatabaseClient own = DatabaseClient.create(database.pool);
        List<Disposable> sent = new ArrayList<>();
        Effect<String> sentOff = (number, db) -> {
            sent.add(Mono.delay(Duration.ofMillis(50)).then(enter(number, own)).subscribe());
            return enter(number, db);
        };
        assertThatThrownBy(() -> assertRollsBack(sentOff, "A-1", database.pool))
                .isInstanceOf(AssertionError.class)
                .hasMessageContaining("table public.ledger has 1 rows instead of 0");
        sent.forEach(Disposable::dispose);
    }

    @Test
    void oneThatWritesNothingProvesNothing() {
        assertThatThrownBy(() -> assertRollsBack((number, db) -> Mono.empty(), "A-1", database.pool))
                .isInstanceOf(AssertionError.class)
                .hasMessageContaining("to write something");
    }

    @Test
    void oneThatFailsIsToldAsItFails() {
        assertThatThrownBy(() -> assertRollsBack(
                        (number, db) -> db.sql("INSERT INTO nowhere VALUES (1)").then(), "A-1", database.pool))
                .isInstanceOf(AssertionError.class)
                .hasMessageContaining("Expected the effect to succeed for A-1")
                .hasMessageContaining("nowhere");
    }
}
