package io.onceflux.chaos;

import static org.assertj.core.api.Assertions.assertThat;

import io.onceflux.services.ForkedJvm;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Whole runs, as {@code dev/chaos} makes them. */
class ChaosTest {

    /** More than the run's own limits: a run that hangs is to say so itself. */
    private static final Duration LIMIT = Duration.ofMinutes(6);

    private static final List<String> JVM = List.of("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m");

    @Test
    void aShortRunOfAllFaultsLosesAndDoublesNothing() {
        try (ForkedJvm run = start("--seed", "4", "--rounds", "4")) {
            String last = lastLine(run);

            assertThat(last)
                    .matches("chaos seed=4 rounds=4 faults=\\d+ messages=2400 lost=0 doubled=0 dead_lettered=(\\d+)"
                            + " expected_poison=\\1");
            assertThat(run.exitCode()).isZero();
            assertThat(run.lines()).endsWith(last);
        }
    }

    @Test
    void aShortRunOverKafkaLosesAndDoublesNothing() {
        try (ForkedJvm run = start("--seed", "5", "--rounds", "4", "--queue", "kafka")) {
            assertThat(lastLine(run))
                    .matches("chaos seed=5 rounds=4 faults=\\d+ messages=2400 lost=0 doubled=0 dead_lettered=(\\d+)"
                            + " expected_poison=\\1");
            assertThat(run.exitCode()).isZero();
        }
    }

    /** A fence lets one message, or batch, of a partition go at a time, so that a short run meets crashes and cuts at every moment of it. */
    @Test
    void aShortRunWithAnOffsetFenceLosesAndDoublesNothing() {
        try (ForkedJvm run = start("--seed", "6", "--rounds", "4", "--queue", "kafka", "--consumer", "offset-fence")) {
            assertThat(lastLine(run))
                    .matches("chaos seed=6 rounds=4 faults=\\d+ messages=2400 lost=0 doubled=0 dead_lettered=(\\d+)"
                            + " expected_poison=\\1");
            assertThat(run.exitCode()).isZero();
        }
    }

    @Test
    void brokenConsumersAreCaught() {
        try (ForkedJvm early = startBroken("acks-before-commit");
                ForkedJvm apart = startBroken("claims-alone");
                ForkedJvm unclaimed = startBroken("check-then-act")) {
            assertCaught(early, "lost");
            assertCaught(apart, "lost");
            assertCaught(unclaimed, "doubled");
        }
    }

    /** Returns when its consumers are up: starts are what needs the processors most, and run better one after the other. */
    private static ForkedJvm startBroken(String consumer) {
        ForkedJvm run = start("--seed", "1", "--rounds", "2", "--faults", "crashes", "--consumer", consumer);
        try {
            run.awaitLine(line -> line.endsWith("consumers are up"), LIMIT);
            return run;
        } catch (IllegalStateException e) {
            run.close();
            throw e;
        }
    }

    private static void assertCaught(ForkedJvm run, String as) {
        assertThat(lastLine(run)).doesNotContain(" " + as + "=0 ");
        assertThat(run.lines()).anyMatch(line -> line.startsWith("  " + as + ": r0"));
        assertThat(run.exitCode()).isEqualTo(1);
    }

    private static ForkedJvm start(String... arguments) {
        return ForkedJvm.start(Chaos.class, JVM, Map.of(), arguments);
    }

    private static String lastLine(ForkedJvm run) {
        return run.awaitLine(line -> line.startsWith("chaos seed="), LIMIT);
    }
}
