package io.onceflux;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class ProgressTest {

    private static final int ALARM_AFTER = 5;

    private final Progress progress = new Progress(ALARM_AFTER, new RecordingListener());
    private int keys;

    private boolean isOneOfMany(String state) {
        return progress.isOneOfMany(
                new MessageKey("c", "key-" + keys++), FailureKind.PERMANENT, DatabaseErrors.withState(state));
    }

    @Test
    void aSecondWayOfFailingDoesNotHideTheFirst() {
        int givenUp = 0;
        for (int i = 0; i < 100; i++) {
            givenUp += isOneOfMany(i % 2 == 0 ? "23502" : "23514") ? 0 : 1;
        }
        assertThat(givenUp).isEqualTo(2 * ALARM_AFTER);
    }

    @Test
    void aMessageThatIsGivenUpAgainCountsOnce() {
        MessageKey key = new MessageKey("c", "1");
        for (int i = 0; i < 100; i++) {
            assertThat(progress.isOneOfMany(key, FailureKind.PERMANENT, DatabaseErrors.withState("23502")))
                    .isFalse();
        }
    }

    @Test
    void anEffectThatIsAppliedClearsEveryWay() {
        for (int i = 0; i < 2 * ALARM_AFTER; i++) {
            isOneOfMany(i % 2 == 0 ? "23502" : "23514");
        }
        assertThat(isOneOfMany("23502")).isTrue();
        progress.applied();
        assertThat(isOneOfMany("23502")).isFalse();
        assertThat(isOneOfMany("23514")).isFalse();
    }

    @Test
    void howeverManyWaysThereAreTheAlarmIsRaised() {
        int givenUp = 0;
        for (int i = 0; i < 10_000; i++) {
            givenUp += isOneOfMany("23%03d".formatted(i % 1_000)) ? 0 : 1;
        }
        assertThat(givenUp).isLessThan(20 * ALARM_AFTER);
    }
}
