package io.onceflux.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.io.BufferedReader;
import java.io.IOException;
import java.time.Duration;
import org.junit.jupiter.api.Test;

class OtherWorkTest {

    private static final Duration LIMIT = Duration.ofSeconds(60);

    @Test
    void aProcessOfSomebodyElseIsCounted() throws Exception {
        long stranger = startOrphan("timeout 60 sh -c 'while :; do :; done'");
        try (OtherWork others = OtherWork.watch()) {
            await().atMost(LIMIT).until(() -> others.share() > 0.05);
        } finally {
            ProcessHandle.of(stranger).ifPresent(ProcessHandle::destroy);
        }
    }

    @Test
    void aProcessOfThisProgramIsNot() throws Exception {
        long stranger = startOrphan("sleep 60");
        Process ours = new ProcessBuilder("sleep", "60").start();
        try (OtherWork others = OtherWork.watch()) {
            assertThat(others.isOther(ours.toHandle())).isFalse();
            assertThat(others.isOther(ProcessHandle.of(stranger).orElseThrow())).isTrue();
        } finally {
            ours.destroy();
            ProcessHandle.of(stranger).ifPresent(ProcessHandle::destroy);
        }
    }

    /** Its parent ends at once, so it is no descendant of this process. */
    private static long startOrphan(String command) throws IOException, InterruptedException {
        Process parent = new ProcessBuilder("sh", "-c", command + " >/dev/null 2>&1 & echo $!").start();
        try (BufferedReader out = parent.inputReader()) {
            long child = Long.parseLong(out.readLine());
            assertThat(parent.waitFor()).isZero();
            return child;
        }
    }
}
