package io.onceflux;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.time.Duration;
import org.junit.jupiter.api.Test;

class HeldLogTest {

    private final HeldLog log = new HeldLog(Duration.ofDays(1));

    @Test
    void whatComesAndGoesIsSaidOnce() {
        assertThat(log.begins(FailureKind.INFRASTRUCTURE)).isTrue();
        assertThat(log.lasts(FailureKind.INFRASTRUCTURE)).isFalse();
        assertThat(log.ends()).isTrue();
        for (int again = 0; again < 100; again++) {
            assertThat(log.begins(FailureKind.INFRASTRUCTURE)).isFalse();
            assertThat(log.lasts(FailureKind.INFRASTRUCTURE)).isFalse();
            assertThat(log.ends()).isFalse();
        }
    }

    @Test
    void whatLastsIsSaidAlthoughItBeganRightBehindAnother() {
        HeldLog quick = new HeldLog(Duration.ofMillis(200));
        assertThat(quick.begins(FailureKind.INFRASTRUCTURE)).isTrue();
        assertThat(quick.ends()).isTrue();
        assertThat(quick.begins(FailureKind.INFRASTRUCTURE)).isFalse();

        await().until(() -> quick.lasts(FailureKind.INFRASTRUCTURE));
        assertThat(quick.lasts(FailureKind.INFRASTRUCTURE)).isFalse();
        assertThat(quick.ends()).isTrue();
    }

    @Test
    void aBrokenSetupIsAlwaysSaid() {
        assertThat(log.begins(FailureKind.INFRASTRUCTURE)).isTrue();
        assertThat(log.begins(FailureKind.BROKEN_SETUP)).isTrue();
        assertThat(log.ends()).isTrue();
        assertThat(log.begins(FailureKind.BROKEN_SETUP)).isTrue();
    }
}
