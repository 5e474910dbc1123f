package io.onceflux;

import static io.onceflux.Consumers.failureOf;
import static io.onceflux.Consumers.orders;
import static io.onceflux.Consumers.policy;
import static io.onceflux.Consumers.run;
import static org.assertj.core.api.Assertions.assertThat;

import io.r2dbc.pool.ConnectionPool;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import reactor.core.publisher.Mono;

/**
 * The server's errors in another language, or with a text that says something else than their SQLSTATE: the SQLSTATE decides.
 * The errors are raised by a function, because not every server is built with translations.
 */
class OtherLanguagesTest {

    @RegisterExtension
    static final FreshDatabase fresh = FreshDatabase.create();

    private final Database database = fresh.database();
    private final ConnectionPool pool = database.pool(5);
    private final RecordingListener listener = new RecordingListener();

    @BeforeAll
    static void createFunction() {
        fresh.database().run("""
                CREATE SEQUENCE tries;
                CREATE FUNCTION fail(state text, message text) RETURNS int LANGUAGE plpgsql AS $$
                BEGIN
                    RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message;
                END $$""");
    }

    @BeforeEach
    void countFromOne() {
        database.run("ALTER SEQUENCE tries RESTART");
    }

    @ParameterizedTest
    @CsvSource({
        "40001, Zugriff konnte nicht wegen gleichzeitiger Änderung serialisiert werden",
        "40P01, デッドロックを検出しました",
        "55P03, duplicate key value violates unique constraint",
        "0A000, syntax error at or near"
    })
    void aConflictIsTriedAgainWhateverItsText(String state, String text) {
        IdempotentConsumer<Order> consumer = orders((order, db) -> order.note(db)
                        .then(db.sql("SELECT CASE WHEN nextval('tries') = 1 THEN fail(:state, :text) END")
                                .bind("state", state)
                                .bind("text", text)
                                .then()))
                .listener(listener)
                .build(pool);

        assertThat(run(consumer, TestDelivery.order("1"))).isInstanceOf(Outcome.Applied.class);

        assertThat(listener.retries).hasSize(1);
        assertThat(listener.retries.get(0).kind()).isEqualTo(FailureKind.CONFLICT);
        assertThat(listener.retries.get(0).sqlState()).isEqualTo(state);
        database.assertAppliedOnce(1);
    }

    @ParameterizedTest
    @CsvSource({
        "23505, doppelter Schlüsselwert verletzt Unique-Constraint",
        "22001, could not serialize access due to concurrent update",
        "42601, connection refused"
    })
    void aPermanentErrorIsGivenUpAtOnceWhateverItsText(String state, String text) {
        IdempotentConsumer<Order> consumer = orders((order, db) -> order.note(db)
                        .then(db.sql("SELECT fail(:state, :text)")
                                .bind("state", state)
                                .bind("text", text)
                                .then()))
                .listener(listener)
                .build(pool);

        Failure failure = failureOf(run(consumer, TestDelivery.order("1")));

        assertThat(failure.kind()).isEqualTo(FailureKind.PERMANENT);
        assertThat(failure.sqlState()).isEqualTo(state);
        assertThat(failure.attempts()).isEqualTo(1);
        assertThat(failure.reason()).contains(text);
        database.assertAppliedOnce(0);
    }

    @Test
    void aDatabaseThatIsShortOfMemoryInAnyLanguageHoldsTheMessage() {
        IdempotentConsumer<Order> consumer = orders((order, db) -> order.note(db)
                        .then(db.sql(
                                        "SELECT CASE WHEN nextval('tries') <= 5 THEN fail('53200', 'Speicher aufgebraucht') END")
                                .then())
                        .then(Mono.empty()))
                .failurePolicy(policy().maxAttempts(1).build())
                .listener(listener)
                .build(pool);

        assertThat(run(consumer, TestDelivery.order("1"))).isInstanceOf(Outcome.Applied.class);

        assertThat(listener.retries).hasSize(5);
        database.assertAppliedOnce(1);
    }
}
