package io.onceflux.examples.loyalty;

import io.onceflux.DeadLetter;
import io.onceflux.DeadLetters;
import java.io.PrintWriter;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;
import reactor.core.Exceptions;
import reactor.core.publisher.Flux;

/**
 * What an operator does with orders that could not be credited: look why, mend the cause, and give them back.
 *
 * <p>It has the settings of {@link LoyaltyApplication}, and needs no database. Exit code: 0, 1 if the broker did not let it, 2 for
 * a wrong argument.
 */
@Command(
        name = "dead-letters",
        mixinStandardHelpOptions = true,
        description = "Lists the orders that could not be credited, or gives them back to be credited.")
public final class DeadLettersCommand {

    private final DeadLetters letters;

    @Spec
    @Nullable
    CommandSpec spec;

    private DeadLettersCommand(DeadLetters letters) {
        this.letters = letters;
    }

    public static void main(String[] args) {
        System.exit(commandLine(LoyaltyApplication.deadLetters()).execute(args));
    }

    static CommandLine commandLine(DeadLetters letters) {
        return new CommandLine(new DeadLettersCommand(letters))
                .setExecutionExceptionHandler((error, command, arguments) -> {
                    Throwable cause = Exceptions.unwrap(error);
                    command.getErr().println(cause.getMessage() == null ? cause.toString() : cause.getMessage());
                    return CommandLine.ExitCode.SOFTWARE;
                });
    }

    @Command(description = "Prints them, the oldest first (of Kafka, in each partition). Each stays where it is.")
    void list() {
        print(letters.list(), "dead letters");
    }

    @Command(
            description =
                    "Gives back all of them, or those that are chosen. What was credited meanwhile is not credited again.")
    void replay(
            @Option(names = "--key", description = "Only the one with this key, such as order-completed:A-1001.")
                    @Nullable
                    String key,
            @Option(names = "--reason", description = "Only those whose reason contains this text.") @Nullable
                    String reason,
            @Option(
                            names = "--per-second",
                            defaultValue = "50",
                            description = "How many in a second at most. Default: ${DEFAULT-VALUE}.")
                    int perSecond) {
        print(
                letters.replay(
                        letter -> (key == null || key.equals(letter.messageKey()))
                                && (reason == null || letter.reason().contains(reason)),
                        perSecond),
                "given back");
    }

    private void print(Flux<DeadLetter> those, String what) {
        PrintWriter out = java.util.Objects.requireNonNull(spec).commandLine().getOut();
        Long count = those.doOnNext(letter -> out.println(line(letter))).count().block();
        out.println(count + " " + what);
        out.flush();
    }

    /** Without the body, which is nobody's business here, and without line breaks of others. */
    private static String line(DeadLetter letter) {
        return "%s  %s  %s  %s"
                .formatted(
                        letter.time() == null ? "some time" : letter.time(),
                        letter.messageKey() == null ? "(no key)" : letter.messageKey(),
                        letter.kind() == null ? "(no kind)" : letter.kind(),
                        letter.reason())
                .replaceAll("\\p{Cntrl}", " ");
    }
}
