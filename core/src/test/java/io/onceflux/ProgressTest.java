package io.onceflux;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class ProgressTest {

    private final Throwable error = new IllegalStateException("away");
    private final RecordingListener listener = new RecordingListener();
    private final Progress progress = new Progress(5, listener);

    @Test
    void anOutageThatTurnsOutToBeABrokenSetupIsToldAgain() {
        progress.held(FailureKind.INFRASTRUCTURE, error);
        progress.held(FailureKind.BROKEN_SETUP, error);
        progress.held(FailureKind.INFRASTRUCTURE, error);
        progress.held(FailureKind.BROKEN_SETUP, error);

        assertThat(listener.held).containsExactly(FailureKind.INFRASTRUCTURE, FailureKind.BROKEN_SETUP);
    }

    @Test
    void anOutageDuringABrokenSetupIsNotWorthAnotherWord() {
        progress.held(FailureKind.BROKEN_SETUP, error);
        progress.held(FailureKind.INFRASTRUCTURE, error);

        assertThat(listener.held).containsExactly(FailureKind.BROKEN_SETUP);
    }

    @Test
    void aCommitEndsBoth() {
        progress.held(FailureKind.INFRASTRUCTURE, error);
        progress.held(FailureKind.BROKEN_SETUP, error);
        progress.committed();
        progress.committed();
        progress.held(FailureKind.INFRASTRUCTURE, error);

        assertThat(listener.resumed).hasValue(1);
        assertThat(listener.held)
                .containsExactly(FailureKind.INFRASTRUCTURE, FailureKind.BROKEN_SETUP, FailureKind.INFRASTRUCTURE);
    }
}
