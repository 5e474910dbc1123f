package io.onceflux.chaos;

import static org.assertj.core.api.Assertions.assertThat;

import io.onceflux.chaos.consumer.DeadLetterPlace;
import io.onceflux.chaos.consumer.Variant;
import java.io.PrintWriter;
import java.io.StringWriter;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import picocli.CommandLine;

class ChaosOptionsTest {

    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    @Test
    void helpIsGivenWhereverItIsAskedFor() {
        assertThat(execute("--seed", "5", "--help")).isZero();

        assertThat(out.toString()).contains("--dead-letters=queue|table", "chaos seed=S rounds=R faults=F");
        assertThat(err.toString()).isEmpty();
    }

    @ParameterizedTest
    @CsvSource({"--rounds,-3", "--rounds,0", "--minutes,0", "--minutes,many", "--max-batch,0", "--rounds,1000000"})
    void aNumberThatIsNoneIsRefusedInASentence(String option, String value) {
        assertThat(execute(option, value)).isEqualTo(2);

        assertThat(err.toString().lines())
                .singleElement()
                .asString()
                .contains(
                        "Invalid value for option '" + option + "'",
                        "it must be a whole number from 1 to 100000, but is '" + value + "'",
                        "; see dev/chaos --help");
    }

    @Test
    void whatIsNotKnownIsRefused() {
        assertThat(execute("--fault", "all")).isEqualTo(2);
        assertThat(execute("--consumer", "perfect")).isEqualTo(2);

        assertThat(err.toString())
                .contains("'--fault'")
                .contains(
                        "'perfect' is none of [onceflux, offset-fence, acks-before-commit, claims-alone, check-then-act]");
    }

    @Test
    void aFenceIsForKafkaAndKeepsNoDeadLettersInATable() {
        assertThat(execute("--consumer", "offset-fence")).isEqualTo(2);
        assertThat(execute("--consumer", "offset-fence", "--queue", "kafka", "--dead-letters", "table"))
                .isEqualTo(2);

        assertThat(err.toString())
                .contains("--consumer offset-fence needs --queue kafka; see dev/chaos --help")
                .contains("--consumer offset-fence cannot have --dead-letters table; see dev/chaos --help");
        assertThat(ConsumerSetup.of(7, Variant.OFFSET_FENCE, null, null).deadLetters())
                .isEqualTo(DeadLetterPlace.QUEUE);
    }

    @Test
    void theSeedChoosesWhatWasNotAskedFor() {
        assertThat(ConsumerSetup.of(4, Variant.ONCEFLUX, null, null))
                .hasToString("ConsumerSetup[variant=ONCEFLUX, deadLetters=QUEUE, maxBatch=[20, 1, 20]]");
        assertThat(ConsumerSetup.of(7, Variant.ONCEFLUX, null, null))
                .hasToString("ConsumerSetup[variant=ONCEFLUX, deadLetters=TABLE, maxBatch=[1, 20, 1]]");
        assertThat(ConsumerSetup.of(7, Variant.ONCEFLUX, DeadLetterPlace.QUEUE, 3))
                .hasToString("ConsumerSetup[variant=ONCEFLUX, deadLetters=QUEUE, maxBatch=[3, 3, 3]]");
    }

    private int execute(String... args) {
        CommandLine line = Chaos.commandLine();
        return line.setOut(new PrintWriter(out, true))
                .setErr(new PrintWriter(err, true))
                .execute(args);
    }
}
