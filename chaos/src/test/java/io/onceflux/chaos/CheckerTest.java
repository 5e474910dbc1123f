package io.onceflux.chaos;

import static org.assertj.core.api.Assertions.assertThat;

import io.onceflux.chaos.Message.Kind;
import io.onceflux.services.PostgresService;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The checker finds each fault in rows of a real database. */
class CheckerTest {

    private static final List<Message> PUBLISHED = List.of(
            new Message("one", Kind.GOOD, "C-000", 10),
            new Message("two", Kind.GOOD, "C-000", 20),
            new Message("undecodable", Kind.UNDECODABLE, "C-000", 30),
            new Message("refused", Kind.REFUSED, "C-000", -40));
    private static final Set<String> CONFIRMED = Set.of("one", "two", "undecodable", "refused");
    private static final Set<String> POISON = Set.of("undecodable", "refused");

    private Books books;

    @BeforeEach
    void openBooks() {
        PostgresService postgres = PostgresService.shared();
        books = new Books(postgres.r2dbcUrl(postgres.newDatabase()));
        books.open(List.of("C-000", "C-001"));
        apply("one", 10);
        apply("two", 20);
    }

    @Test
    void booksThatAgreeAreGood() {
        Verdict verdict = check(CONFIRMED, POISON);

        assertThat(verdict.details()).isEmpty();
        assertThat(verdict.isGood()).isTrue();
        assertThat(verdict.line())
                .isEqualTo("chaos seed=7 rounds=1 faults=2 messages=4 lost=0 doubled=0 dead_lettered=2"
                        + " expected_poison=2");
    }

    @Test
    void aConfirmedMessageWithoutARowIsLost() {
        books.run("DELETE FROM ledger WHERE message_id = 'two'");
        books.run("DELETE FROM processed_messages WHERE message_key = 'two'");
        books.run("UPDATE balances SET points = 10 WHERE customer = 'C-000'");

        Verdict verdict = check(CONFIRMED, POISON);

        assertThat(verdict.lost()).containsExactly("two");
        assertThat(verdict.complaints()).isEmpty();
        assertThat(verdict.isGood()).isFalse();
        assertThat(verdict.details()).containsExactly("lost: two");
    }

    @Test
    void aMessageWithTwoRowsIsDoubled() {
        books.run("INSERT INTO ledger (message_id, customer, points) VALUES ('two', 'C-000', 20)");
        books.run("UPDATE balances SET points = 50 WHERE customer = 'C-000'");

        Verdict verdict = check(CONFIRMED, POISON);

        assertThat(verdict.doubled()).containsExactly("two");
        assertThat(verdict.complaints()).isEmpty();
        assertThat(verdict.isGood()).isFalse();
    }

    @Test
    void poisonThatIsNoDeadLetterIsLost() {
        Verdict verdict = check(CONFIRMED, Set.of("undecodable"));

        assertThat(verdict.lost()).containsExactly("refused");
        assertThat(verdict.line()).endsWith("dead_lettered=1 expected_poison=2");
        assertThat(verdict.isGood()).isFalse();
    }

    @Test
    void aGoodMessageAmongTheDeadLettersIsToldEvenIfItWasApplied() {
        Verdict verdict = check(CONFIRMED, Set.of("undecodable", "refused", "one"));

        assertThat(verdict.complaints()).containsExactly("not poison, and a dead letter: one");
        assertThat(verdict.isGood()).isFalse();
    }

    @Test
    void aMessageThatWasNeverConfirmedIsNotLostButTold() {
        Verdict verdict = check(Set.of("one", "two", "undecodable"), POISON);

        assertThat(verdict.lost()).isEmpty();
        assertThat(verdict.complaints()).containsExactly("never confirmed: refused");
        assertThat(verdict.isGood()).isFalse();
    }

    @Test
    void claimsThatAreNotTheLedgersAreTold() {
        books.run("UPDATE processed_messages SET message_key = 'other' WHERE message_key = 'two'");

        assertThat(check(CONFIRMED, POISON).complaints())
                .containsExactly("applied without a claim: two", "claimed and not applied: other");
    }

    @Test
    void aBalanceThatIsNotTheSumOfTheLedgerIsTold() {
        books.run("UPDATE balances SET points = points + 1 WHERE customer = 'C-001'");

        assertThat(check(CONFIRMED, POISON).complaints())
                .containsExactly("balances that are not the sum of the ledger: C-001");
    }

    @Test
    void whatWasNeverPublishedIsTold() {
        apply("stranger", 5);

        assertThat(check(CONFIRMED, POISON).complaints()).containsExactly("applied and never published: stranger");
    }

    private Verdict check(Set<String> confirmed, Set<String> deadLetters) {
        Schedule schedule = new Schedule(7, Mix.ALL, List.of(List.of()));
        return new Checker(PUBLISHED, confirmed, deadLetters, books).check(schedule, 2, List.of());
    }

    private void apply(String id, long points) {
        books.run("INSERT INTO processed_messages (consumer, message_key) VALUES ('chaos', '" + id + "')");
        books.run("INSERT INTO ledger (message_id, customer, points) VALUES ('%s', 'C-000', %d)".formatted(id, points));
        books.run("UPDATE balances SET points = points + %d WHERE customer = 'C-000'".formatted(points));
    }
}
