package io.onceflux.chaos;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

class ScheduleTest {

    @Test
    void theSameSeedGivesTheSameScheduleAndAnotherSeedAnotherOne() {
        String schedule = Schedule.of(7, 30, Mix.ALL).toString();

        assertThat(Schedule.of(7, 30, Mix.ALL)).hasToString(schedule);
        assertThat(Schedule.of(8, 30, Mix.ALL).toString()).isNotEqualTo(schedule);
    }

    @Test
    void aSeedGivesTheSameScheduleInAnyProcess() {
        assertThat(Schedule.of(7, 3, Mix.ALL)).hasToString("""
                round 1: answer to COMMIT of consumer 2 delayed by 1439 ms, 3 times after 18; SIGKILL of the broker, away for 2273 ms
                round 2: SIGTERM of consumer 1
                round 3: consumer 3 cut before the answer to COMMIT, 4 times after 0
                """);
    }

    @Test
    void whereAcknowledgementsCannotBeHitNoneIs() {
        assertThat(faults(Schedule.of(7, 60, Mix.ALL, FaultKind.AT_ACKS)))
                .extracting(Fault::kind)
                .doesNotContainAnyElementsOf(FaultKind.AT_ACKS)
                .contains(FaultKind.CUT_BEFORE_COMMIT);
    }

    @Test
    void aLongerScheduleBeginsLikeAShorterOne() {
        assertThat(Schedule.of(7, 30, Mix.ALL).toString())
                .startsWith(Schedule.of(7, 3, Mix.ALL).toString());
    }

    @Test
    void aMinuteHasEightOrMoreFaultsAndThreeMinutesHaveEveryKind() {
        for (long seed = 0; seed < 20; seed++) {
            assertThat(faults(Schedule.of(seed, 18, Mix.ALL)))
                    .hasSizeBetween(20, 50)
                    .extracting(Fault::kind)
                    .contains(FaultKind.KILL_CONSUMER);
            assertThat(kinds(Schedule.of(seed, 36, Mix.ALL))).isEqualTo(EnumSet.allOf(FaultKind.class));
        }
    }

    @Test
    void theProducersMessagesDependOnTheSeedToo() {
        assertThat(new Messages(7, 100, true).publications(3)).isEqualTo(new Messages(7, 100, true).publications(3));
        assertThat(new Messages(7, 100, true).publications(3)).isNotEqualTo(new Messages(8, 100, true).publications(3));
    }

    @Test
    void everyMessageOfARoundGoesOutAndSomeMoreThanOnceAndSomeAreOld() {
        Messages messages = new Messages(7, 100, true);

        List<Message> out = messages.publications(3);

        assertThat(out).containsAll(messages.distinct(3)).hasSizeBetween(110, 140);
        assertThat(out).anyMatch(message -> !message.id().startsWith("r004-"));
        assertThat(messages.distinct(3)).anyMatch(Message::isPoison).doesNotHaveDuplicates();
    }

    private static List<Fault> faults(Schedule schedule) {
        return schedule.rounds().stream().flatMap(List::stream).toList();
    }

    private static Set<FaultKind> kinds(Schedule schedule) {
        return faults(schedule).stream().map(Fault::kind).collect(Collectors.toSet());
    }
}
