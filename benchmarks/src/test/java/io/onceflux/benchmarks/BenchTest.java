package io.onceflux.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;

import io.onceflux.benchmarks.turns.Fork;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;

class BenchTest {

    @Test
    void withoutArgumentsEverythingIsMeasured() {
        Plan plan = parsed().plan();
        assertThat(names(plan))
                .containsExactly(
                        "database",
                        "rabbit",
                        "kafka",
                        "pipeline",
                        "latency",
                        "duplicates",
                        "lanes",
                        "hot-keys",
                        "table",
                        "retention");
        assertThat(plan.millionsOfKeys()).isEqualTo(10);
        assertThat(plan.scaleRounds()).isEqualTo(3);
    }

    @Test
    void aPartMayBeMeasuredAlone() {
        Plan plan = parsed("--only", "latency,memory").plan();
        assertThat(names(plan)).containsExactly("latency");
        assertThat(plan.millionsOfKeys()).isEqualTo(10);
        assertThat(plan.scaleRounds()).isZero();
        assertThat(plan.relayRounds()).isZero();
        assertThat(plan.dropRounds()).isZero();
    }

    @Test
    void roundsAndSlicesMayBeChosen() {
        Plan plan = parsed("--quick", "--rounds", "2", "--slice", "500").plan();
        assertThat(plan.parts()).allSatisfy(part -> {
            assertThat(part.rounds()).isEqualTo(2);
            assertThat(part.slice()).isEqualTo(Duration.ofMillis(500));
        });
    }

    @Test
    void theUsualWarmUpIsFifteenSecondsAndTheReportIsInTarget() {
        Bench bench = parsed();
        assertThat(bench.warmUpSeconds).isEqualTo(15);
        assertThat(bench.output).isEqualTo(Path.of("benchmarks/target/report"));
    }

    @Test
    void whatIsNotThereIsRefusedWithASentence() {
        StringWriter said = new StringWriter();
        CommandLine command = Bench.commandLine().setErr(new PrintWriter(said));
        assertThat(command.execute("--only", "everything")).isEqualTo(CommandLine.ExitCode.USAGE);
        assertThat(said.toString()).contains("latency").contains("[everything]");
        assertThat(command.execute("--rounds", "0")).isEqualTo(CommandLine.ExitCode.USAGE);
        assertThat(command.execute("--fast")).isEqualTo(CommandLine.ExitCode.USAGE);
    }

    @Test
    void theQuickRunIsShortEnough() {
        Plan plan = Plan.quick();
        double seconds = plan.parts().stream()
                .mapToDouble(part -> part.forks().stream()
                        .mapToDouble(
                                fork -> 15 + slices(fork, part) * part.slice().toMillis() / 1e3)
                        .sum())
                .sum();
        assertThat(seconds).isLessThan(260); // The rest of six minutes is for the build, servers and queues.
    }

    private static double slices(Fork fork, Part part) {
        return (double) fork.cases().size() * part.rounds();
    }

    private static Bench parsed(String... args) {
        CommandLine command = Bench.commandLine();
        command.parseArgs(args);
        return command.getCommand();
    }

    private static List<String> names(Plan plan) {
        return plan.parts().stream().map(Part::name).toList();
    }
}
