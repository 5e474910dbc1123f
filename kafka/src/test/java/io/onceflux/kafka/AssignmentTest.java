package io.onceflux.kafka;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Test;

/** How far a partition may be committed. */
class AssignmentTest {

    private final Assignment assignment = new Assignment(new TopicPartition("orders", 0), null, false);

    private boolean come(long... offsets) {
        return assignment.fetched(records(offsets));
    }

    private static List<ConsumerRecord<byte[], byte[]>> records(long... offsets) {
        return Arrays.stream(offsets)
                .mapToObj(offset -> new ConsumerRecord<>("orders", 0, offset, new byte[0], new byte[0]))
                .collect(Collectors.toList());
    }

    private void take(long... offsets) {
        for (long offset : offsets) {
            assertThat(assignment.take(offset)).as("takes %d", offset).isZero();
        }
    }

    private void done(long... offsets) {
        for (long offset : offsets) {
            assertThat(assignment.complete(offset)).isTrue();
        }
    }

    @Test
    void aPartitionThatHasAllItsPlacesWaitsUntilHalfOfThemAreFree() {
        Assignment partition = new Assignment(new TopicPartition("orders", 0), null, true);
        AtomicInteger room = new AtomicInteger();
        assertThat(partition.fetched(records(10, 11, 12))).isTrue();
        assertThat(partition.isFull(4)).isFalse();
        assertThat(partition.fetched(records(13))).isTrue();
        assertThat(partition.isFull(4)).isTrue();

        assertThat(partition.complete(10, room::incrementAndGet)).isTrue();
        assertThat(room).hasValue(0);
        assertThat(partition.isFull(4)).isTrue();
        assertThat(partition.complete(11, room::incrementAndGet)).isTrue();

        assertThat(room).hasValue(1);
        assertThat(partition.isFull(4)).isFalse();
        assertThat(partition.complete(12, room::incrementAndGet)).isTrue();
        assertThat(room).hasValue(1);
    }

    @Test
    void nothingIsCommittedOfAPartitionThatHasToBeLookedAtFirst() {
        Assignment ordered = new Assignment(new TopicPartition("orders", 0), null, true);
        assertThat(ordered.mayBegin()).isFalse();
        assertThat(ordered.committable(70)).isEqualTo(Assignment.UNKNOWN);
        ordered.beginAt(70);
        assertThat(ordered.mayBegin()).isTrue();
        assertThat(ordered.committable(70)).isEqualTo(70);
        assertThat(ordered.fetched(records(69)))
                .as("what comes from before the group's offset")
                .isFalse();
    }

    @Test
    void nothingIsCommittedPastAMessageThatIsNotDone() {
        come(10, 11, 12, 13);
        take(10, 11, 12, 13);
        assertThat(assignment.committable(14)).isEqualTo(10);
        done(13, 12);
        assertThat(assignment.committable(14)).isEqualTo(10);
        assertThat(assignment.deferred()).isEqualTo(2);
        done(10);
        assertThat(assignment.committable(14)).isEqualTo(11);
        done(11);
        assertThat(assignment.committable(14)).isEqualTo(14);
        assertThat(assignment.deferred()).isZero();
    }

    @Test
    void offsetsThatNoMessageHasArePassedOver() {
        come(10, 15, 30);
        take(10, 15, 30);
        done(15, 30);
        assertThat(assignment.committable(40)).isEqualTo(10);
        done(10);
        assertThat(assignment.committable(40)).as("behind them too").isEqualTo(40);
        assertThat(assignment.committable(Assignment.UNKNOWN)).isEqualTo(31);
    }

    @Test
    void whatIsFetchedAndNotYetDeliveredIsNotPassed() {
        come(10, 11);
        take(10);
        done(10);
        assertThat(assignment.committable(12)).isEqualTo(11);
    }

    @Test
    void inWhateverOrderMessagesAreDoneTheOffsetIsThatOfTheFirstThatIsNot() {
        Random random = new Random(7);
        for (int round = 0; round < 200; round++) {
            Assignment fresh = new Assignment(new TopicPartition("orders", 0), null, false);
            List<Long> offsets = LongStream.range(0, 50)
                    .filter(offset -> random.nextInt(4) > 0)
                    .boxed()
                    .collect(Collectors.toList());
            fresh.fetched(offsets.stream()
                    .map(offset -> new ConsumerRecord<>("orders", 0, offset, new byte[0], new byte[0]))
                    .collect(Collectors.toList()));
            List<Long> open = new java.util.ArrayList<>(offsets);
            List<Long> order = new java.util.ArrayList<>(offsets);
            Collections.shuffle(order, random);
            for (long offset : order) {
                fresh.complete(offset);
                open.remove(offset);
                long first = open.isEmpty() ? 50 : open.get(0);
                assertThat(fresh.committable(50)).isEqualTo(first);
                long behind = offsets.stream().filter(one -> one >= first).count();
                assertThat(fresh.deferred()).isEqualTo(open.isEmpty() ? 0 : behind - open.size());
            }
        }
    }

    @Test
    void whatIsLetGoIsFetchedAgainAloneAndHoldsTheOffset() {
        come(10, 11, 12);
        take(10, 11);
        done(11);
        assertThat(assignment.giveBack(10)).isTrue();
        assertThat(assignment.committable(13)).isEqualTo(10);

        assertThat(assignment.stepBack()).isEqualTo(10);
        assertThat(assignment.take(12)).as("a copy from before the step back").isEqualTo(Assignment.NOT_NOW);
        come(10, 11, 12, 13);
        take(10, 12, 13);
        assertThat(assignment.take(11)).as("it is done").isEqualTo(Assignment.NOT_NOW);
        assertThat(assignment.stepBack()).isNull();
        done(10, 12, 13);
        assertThat(assignment.committable(14)).isEqualTo(14);
    }

    /** Otherwise the partition would be held back for ever: what it waits for is never fetched. */
    @Test
    void aPartitionIsNotHeldBackWhileSomethingIsToBeFetchedAgain() {
        come(10, 11, 12, 13);
        take(10, 11, 12, 13);
        done(11, 12, 13);
        assertThat(assignment.isTooFarAhead(3)).isTrue();

        assignment.giveBack(10);
        assertThat(assignment.isTooFarAhead(3)).isFalse();
        assignment.stepBack();
        assertThat(assignment.isTooFarAhead(3)).isFalse();
        come(10);
        take(10);
        assertThat(assignment.isTooFarAhead(3)).isTrue();
    }

    @Test
    void aPartitionThatBeginsAgainAfterAStepBackIsNoticedToo() {
        come(10, 11, 12);
        take(10, 11, 12);
        assignment.giveBack(10);
        assignment.stepBack();
        assertThat(come(10, 11, 12, 13)).isTrue();
        assertThat(come(3, 4)).isFalse();
    }

    @Test
    void whatIsLetGoAndThenDeletedFromTheTopicHoldsUpNothing() {
        come(10, 11);
        take(10, 11);
        done(11);
        assignment.giveBack(10);
        assignment.stepBack();
        come(14);
        assertThat(assignment.passed(15)).containsExactly(10L);
        assertThat(assignment.committable(15)).isEqualTo(14);
    }

    @Test
    void aCopyFromBeforeARebalanceIsNotDeliveredInFrontOfWhatComesAgain() {
        come(10, 11);
        assertThat(assignment.take(11)).isEqualTo(Assignment.NOT_NOW);
        take(10);
        assertThat(assignment.take(10)).isEqualTo(Assignment.NOT_NOW);
        take(11);
    }

    @Test
    void aPartitionThatBeginsAgainIsNoticed() {
        assertThat(come(10, 11)).isTrue();
        assertThat(come(3, 4)).as("truncated, or created anew").isFalse();
    }

    @Test
    void aPartitionThatIsGivenAwayTakesAnswersAndBeginsNothing() {
        come(10, 11);
        take(10);
        assignment.giveAway();
        assertThat(assignment.isCurrent(10, 0)).isFalse();
        assertThat(assignment.take(11)).isEqualTo(Assignment.NOT_NOW);
        assertThat(assignment.complete(10)).isTrue();
        assertThat(assignment.committable(12)).isEqualTo(11);
        assignment.end();
        assertThat(assignment.complete(11)).isFalse();
        assertThat(assignment.giveBack(11)).isFalse();
    }

    @Test
    void waitingEndsWithTheLastThatIsUnderWayOrTheLimitOrACut() throws Exception {
        assignment.handlingBegins();
        long start = System.nanoTime();
        assignment.awaitQuiet(start + Duration.ofMillis(50).toNanos());
        assertThat(System.nanoTime() - start)
                .isGreaterThanOrEqualTo(Duration.ofMillis(50).toNanos());

        long far = System.nanoTime() + Duration.ofMinutes(5).toNanos();
        Thread ending = new Thread(assignment::handlingEnded);
        ending.start();
        assignment.awaitQuiet(far);
        ending.join();

        assignment.handlingBegins();
        Thread cutting = new Thread(assignment::cut);
        cutting.start();
        assignment.awaitQuiet(far);
        cutting.join();
        assertThat(System.nanoTime()).isLessThan(far);
    }

    @Test
    void whereOrderMattersWhatIsLetGoTakesWhatIsBehindItAlong() {
        Assignment ordered = new Assignment(new TopicPartition("orders", 0), null, true);
        ordered.beginAt(Assignment.UNKNOWN);
        assertThat(ordered.fetched(records(10, 11, 12))).isTrue();
        int round = ordered.take(10);
        assertThat(ordered.take(11)).isEqualTo(round);
        assertThat(ordered.take(12)).isEqualTo(round);
        assertThat(ordered.complete(10)).isTrue();

        assertThat(ordered.giveBack(11)).isTrue();
        assertThat(ordered.isCurrent(12, round)).isFalse();
        assertThat(ordered.committable(13)).isEqualTo(11);
        assertThat(ordered.stepBack()).isEqualTo(11);
        assertThat(ordered.fetched(records(11, 12))).isTrue();
        int again = ordered.take(11);
        assertThat(ordered.take(12)).isEqualTo(again);
        assertThat(ordered.isCurrent(12, again)).isTrue();
        assertThat(ordered.isCurrent(12, round)).isFalse();
    }

    @Test
    void whereOrderMattersWhatIsBeforeOneThatIsLetGoComesAgainToo() {
        Assignment ordered = new Assignment(new TopicPartition("orders", 0), null, true);
        ordered.beginAt(Assignment.UNKNOWN);
        assertThat(ordered.fetched(records(5, 6, 7))).isTrue();
        int round = ordered.take(5);
        assertThat(ordered.take(6)).isEqualTo(round);
        assertThat(ordered.giveBack(6)).isTrue();
        assertThat(ordered.isCurrent(5, round)).isFalse();
        assertThat(ordered.stepBack()).isEqualTo(5);
    }

    @Test
    void whereOrderMattersNothingIsHandledBehindOneThatIsBlocked() {
        Assignment ordered = new Assignment(new TopicPartition("orders", 0), null, true);
        ordered.beginAt(Assignment.UNKNOWN);
        assertThat(ordered.fetched(records(10, 11))).isTrue();
        int round = ordered.take(10);
        assertThat(ordered.take(11)).isEqualTo(round);
        ordered.block(10);
        assertThat(ordered.isCurrent(10, round)).isTrue();
        assertThat(ordered.isCurrent(11, round)).isFalse();
        assertThat(ordered.complete(10)).isTrue();
        assertThat(ordered.isCurrent(11, round)).isTrue();
    }
}
