package io.onceflux.chaos;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.onceflux.chaos.Message.Kind;
import io.onceflux.chaos.consumer.Copy;
import io.onceflux.chaos.consumer.Told;
import io.onceflux.services.PostgresService;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The checker finds each fault in rows of a real database, in dead letters, and in what the consumers told. */
class CheckerTest {

    private static final Message ONE = new Message("one", Kind.GOOD, "C-000", 10);
    private static final Message TWO = new Message("two", Kind.GOOD, "C-000", 20);
    private static final Message UNDECODABLE = new Message("undecodable", Kind.UNDECODABLE, "C-000", 30);
    private static final Message REFUSED = new Message("refused", Kind.REFUSED, "C-000", -40);
    private static final String PROMISED_LINE =
            "chaos seed=7 rounds=1 faults=2 messages=4 lost=%d doubled=%d" + " dead_lettered=%d expected_poison=2";

    private final List<Message> published = new ArrayList<>(List.of(ONE, TWO, UNDECODABLE, REFUSED));
    private final Copies copies = new Copies();
    private final List<Letter> letters = new ArrayList<>();
    private final List<Told> told = new ArrayList<>();
    private Books books;

    /** A run in which all went well. */
    @BeforeEach
    void openBooks() {
        PostgresService postgres = PostgresService.shared();
        books = new Books(postgres.r2dbcUrl(postgres.newDatabase()), false);
        books.open(List.of("C-000", "C-001"));
        for (Message message : List.of(ONE, TWO)) {
            tell(send(message), "Applied");
            apply(message.id(), message.customer(), message.points());
        }
        for (Message message : List.of(UNDECODABLE, REFUSED)) {
            Copy copy = send(message);
            tell(copy, "Failed");
            letters.add(Letter.inQueue(copy, "no good", message.body()));
        }
    }

    @Test
    void whatAgreesIsGood() {
        Verdict verdict = check();

        assertThat(verdict.complaints()).isEmpty();
        assertThat(verdict.isGood()).isTrue();
        assertThat(verdict.lines()).endsWith(PROMISED_LINE.formatted(0, 0, 2));
        assertThat(verdict.notes())
                .contains(
                        "sent once and confirmed, so that no copy can hide a loss: 4 of 4 messages",
                        "dead letters: stored 2 times, for 2 copies that were given up",
                        "order: 1 effects compared with the one before, of the same customer in the same process");
    }

    @Test
    void aConfirmedMessageWithoutARowIsLost() {
        forget("two");
        books.run("UPDATE balances SET points = 10 WHERE customer = 'C-000'");

        Verdict verdict = check();

        assertThat(verdict.lost()).containsExactly("two");
        assertThat(verdict.complaints())
                .containsExactly(
                        "told as applied more often than they are in the ledger: two",
                        "balances that are not the sum of what was published: C-000");
        assertThat(verdict.isGood()).isFalse();
        assertThat(verdict.lines()).contains("  lost: two").endsWith("complaints=2", PROMISED_LINE.formatted(1, 0, 2));
    }

    @Test
    void aMessageWithTwoRowsIsDoubled() {
        addRow("two", "C-000", 20);

        Verdict verdict = check();

        assertThat(verdict.doubled()).containsExactly("two");
        assertThat(verdict.complaints()).containsExactly("balances that are not the sum of what was published: C-000");
        assertThat(verdict.isGood()).isFalse();
    }

    @Test
    void aCopyThatLeftTheQueueWithoutAnOutcomeIsLostEvenIfAnotherWasApplied() {
        send(TWO);

        Verdict verdict = check();

        assertThat(verdict.lost()).containsExactly("two");
        assertThat(verdict.complaints()).containsExactly("left the queue without an outcome: two copy 2");
        assertThat(verdict.notes())
                .contains("sent once and confirmed, so that no copy can hide a loss: 3 of 4 messages");
    }

    @Test
    void aCopyThatWasNotConfirmedOwesNothing() {
        copies.next("two");

        assertThat(check().isGood()).isTrue();
    }

    @Test
    void anEffectThatIsGoneIsLostEvenIfACopyWasAppliedLater() {
        tell(send(TWO), "Applied");

        Verdict verdict = check();

        assertThat(verdict.lost()).containsExactly("two");
        assertThat(verdict.complaints()).containsExactly("told as applied more often than they are in the ledger: two");
    }

    @Test
    void aCopyThatWasADuplicateIsGood() {
        tell(send(TWO), "Duplicate");

        assertThat(check().isGood()).isTrue();
    }

    @Test
    void aGoodMessageThatWasGivenUpIsToldEvenIfACopyWasApplied() {
        tell(send(TWO), "Failed");

        assertThat(check().complaints()).containsExactly("not poison, and given up: two copy 2");
    }

    @Test
    void anotherCustomerOrOtherPointsAreToldEvenIfTheBooksAgreeWithEachOther() {
        forget("two");
        apply("two", "C-001", 99);
        books.run("UPDATE balances SET points = 10 WHERE customer = 'C-000'");

        Verdict verdict = check();

        assertThat(verdict.isGood()).isFalse();
        assertThat(verdict.complaints())
                .containsExactly(
                        "applied with another customer or other points than published: two",
                        "balances that are not the sum of what was published: C-000, C-001");
    }

    @Test
    void poisonThatIsNoDeadLetterIsLost() {
        letters.removeIf(letter -> letter.id().equals("refused"));

        Verdict verdict = check();

        assertThat(verdict.lost()).containsExactly("refused");
        assertThat(verdict.lines()).endsWith(PROMISED_LINE.formatted(1, 0, 1));
        assertThat(verdict.isGood()).isFalse();
    }

    @Test
    void everyCopyOfPoisonIsADeadLetterInTheQueue() {
        Copy second = send(REFUSED);
        tell(second, "Failed");
        letters.add(Letter.inQueue(new Copy("refused", 1), "again, after a crash", REFUSED.body()));

        assertThat(check().lost()).containsExactly("refused");

        letters.add(Letter.inQueue(second, "no good", REFUSED.body()));
        assertThat(check().isGood()).isTrue();
        assertThat(check().notes()).contains("dead letters: stored 4 times, for 3 copies that were given up");
    }

    @Test
    void theTableCountsTheCopiesOfPoison() {
        tell(send(REFUSED), "Failed");
        letters.removeIf(letter -> letter.id().equals("refused"));
        letters.add(Letter.inTable("refused", 1, "no good", REFUSED.body()));

        Verdict verdict = check();
        assertThat(verdict.lost()).containsExactly("refused");
        assertThat(verdict.complaints()).containsExactly("copies of poison that are no dead letter: refused copy 2");

        letters.set(1, Letter.inTable("refused", 2, "no good", REFUSED.body()));
        assertThat(check().isGood()).isTrue();
    }

    @Test
    void aDeadLetterKeepsItsBodyAndSaysWhy() {
        letters.set(0, Letter.inQueue(new Copy("undecodable", 1), "no good", "another".getBytes(UTF_8)));
        letters.set(1, Letter.inQueue(new Copy("refused", 1), "", REFUSED.body()));

        assertThat(check().complaints())
                .containsExactly(
                        "dead letters with another body than published: undecodable",
                        "dead letters without a reason: refused");
    }

    @Test
    void aGoodMessageAmongTheDeadLettersIsToldEvenIfItWasApplied() {
        letters.add(Letter.inQueue(new Copy("one", 1), "no good", ONE.body()));

        Verdict verdict = check();

        assertThat(verdict.complaints()).containsExactly("not poison, and a dead letter: one");
        assertThat(verdict.isGood()).isFalse();
    }

    @Test
    void aMessageThatWasNeverConfirmedIsNotLostButTold() {
        published.add(new Message("three", Kind.REFUSED, "C-000", -1));
        copies.next("three");

        Verdict verdict = check();

        assertThat(verdict.lost()).isEmpty();
        assertThat(verdict.complaints()).containsExactly("never confirmed: three");
        assertThat(verdict.isGood()).isFalse();
    }

    @Test
    void claimsThatAreNotTheLedgersAreTold() {
        books.run("UPDATE processed_messages SET message_key = 'other' WHERE message_key = 'two'");

        assertThat(check().complaints())
                .containsExactly("applied without a claim: two", "claimed and not applied: other");
    }

    @Test
    void aBalanceThatIsNotTheSumOfTheLedgerIsTold() {
        books.run("UPDATE balances SET points = points + 1 WHERE customer = 'C-001'");

        assertThat(check().complaints())
                .containsExactly(
                        "balances that are not the sum of the ledger: C-001",
                        "balances that are not the sum of what was published: C-001");
    }

    @Test
    void whatWasNeverPublishedIsTold() {
        apply("stranger", "C-000", 5);

        assertThat(check().complaints())
                .containsExactly(
                        "applied and never published: stranger",
                        "balances that are not the sum of what was published: C-000");
    }

    @Test
    void theOrderWithinAProcessIsThatOfTheArrivals() {
        told.clear();
        tell(new Copy("two", 1), "Applied");
        tell(new Copy("one", 1), "Applied");
        tell(new Copy("undecodable", 1), "Failed");
        tell(new Copy("refused", 1), "Failed");

        assertThat(check().complaints()).containsExactly("applied in another order than they arrived: one before two");
    }

    private Verdict check() {
        Schedule schedule = new Schedule(7, Mix.ALL, List.of(List.of()));
        return new Checker(published, copies, letters, List.of(told), books).check(schedule, 2, List.of());
    }

    private Copy send(Message message) {
        Copy copy = copies.next(message.id());
        copies.confirm(List.of(copy));
        return copy;
    }

    private void tell(Copy copy, String outcome) {
        told.add(new Told(copy, told.size() + 1, outcome));
    }

    private void apply(String id, String customer, long points) {
        books.run("INSERT INTO processed_messages (consumer, message_key) VALUES ('chaos', '" + id + "')");
        addRow(id, customer, points);
    }

    private void addRow(String id, String customer, long points) {
        books.run("INSERT INTO ledger (message_id, customer, points) VALUES ('%s', '%s', %d)"
                .formatted(id, customer, points));
        books.run("UPDATE balances SET points = points + %d WHERE customer = '%s'".formatted(points, customer));
    }

    private void forget(String id) {
        books.run("DELETE FROM ledger WHERE message_id = '" + id + "'");
        books.run("DELETE FROM processed_messages WHERE message_key = '" + id + "'");
    }
}
