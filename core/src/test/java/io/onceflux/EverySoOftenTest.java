package io.onceflux;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.time.Duration;
import org.junit.jupiter.api.Test;

class EverySoOftenTest {

    @Test
    void whatComesAtOnceAgainIsKeptBack() {
        EverySoOften often = new EverySoOften(Duration.ofDays(1));
        assertThat(often.isOpen()).isTrue();
        assertThat(often.isOpen()).isFalse();
        assertThat(often.isOpen()).isFalse();
    }

    @Test
    void afterTheTimeItIsOpenAgain() {
        EverySoOften often = new EverySoOften(Duration.ofMillis(1));
        assertThat(often.isOpen()).isTrue();
        await().until(often::isOpen);
    }
}
