package io.onceflux.benchmarks.turns;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.onceflux.benchmarks.scenario.Site;
import io.onceflux.benchmarks.variant.Case;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** With real forks of JMH, and cases that need no server. */
class InTurnsTest {

    private static final Site NOWHERE = new Site("", 0, "", "", "", "", "");

    @TempDir
    Path folder;

    private final List<String> progress = Collections.synchronizedList(new ArrayList<>());

    @BeforeAll
    static void severalForksAtATime() {
        System.setProperty("jmh.ignoreLock", "true");
    }

    @Test
    void everyCaseOfEveryForkHasAFigureForEachRound() throws Exception {
        Map<Case, List<Double>> measured = turns().measure(
                        List.of(
                                Fork.of("pipeline-per-message", "pipeline-per-message/duplicates=50"),
                                Fork.of("pipeline-per-message/lanes=1")),
                        () -> NOWHERE);
        assertThat(measured.keySet())
                .extracting(Case::toString)
                .containsExactly(
                        "pipeline-per-message", "pipeline-per-message/duplicates=50", "pipeline-per-message/lanes=1");
        assertThat(measured.values())
                .allSatisfy(rounds -> assertThat(rounds)
                        .hasSize(2)
                        .allSatisfy(rate -> assertThat(rate).isPositive()));
        assertThat(progress).endsWith("round 1 of 2", "round 2 of 2");
    }

    @Test
    void aForkThatFailsFailsAllAndSaysWhereItsLogIs() {
        assertThatThrownBy(
                        () -> turns().measure(List.of(Fork.of("pipeline-per-message"), Fork.of("jdbc")), () -> NOWHERE))
                .hasMessageContaining(folder.toString());
    }

    /** The first fork waits for the last, and the last for the first's warm-up: neither makes it any shorter. */
    @Test
    void aForkWarmsUpForAsLongAsItShouldHoweverLongItWaitedBefore() throws Exception {
        Map<String, Long> times = new LinkedHashMap<>();
        turns(Duration.ofSeconds(1), line -> times.put(line, System.nanoTime()))
                .measure(List.of(Fork.of("pipeline"), Fork.of("pipeline-per-message")), () -> NOWHERE);
        List<Long> at = List.copyOf(times.values());
        assertThat(Duration.ofNanos(at.get(1) - at.get(0))).isGreaterThanOrEqualTo(Duration.ofSeconds(1));
        assertThat(Duration.ofNanos(at.get(2) - at.get(1))).isGreaterThanOrEqualTo(Duration.ofSeconds(1));
    }

    private InTurns turns() {
        return turns(Duration.ofMillis(200), progress::add);
    }

    private InTurns turns(Duration warmUp, Consumer<String> told) {
        return new InTurns(warmUp, Duration.ofMillis(200), 2, List.of("-Xmx256m"), folder, told);
    }
}
