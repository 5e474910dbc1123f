package io.onceflux.chaos;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/**
 * Lets consumers, servers and connections fail by a seeded schedule while messages flow, and checks that every message had
 * its effect once. Run it with {@code dev/chaos}.
 *
 * <p>Exit code: 0 if nothing was lost or doubled and everything else is as it should be, 1 if not or if the run failed, 2 for
 * an option that it does not know.
 */
@Command(
        name = "dev/chaos",
        sortOptions = false,
        usageHelpAutoWidth = true,
        description = {
            "",
            "Three consumers, each a JVM of its own, take messages from a real RabbitMQ or Kafka and apply them in a real PostgreSQL, while"
                    + " consumers and servers are killed, stalled and restarted, and connections are cut or delayed around COMMIT"
                    + " and acknowledgement. The producer sends copies, changes the order, and sends poison. At the end faults"
                    + " stop, and what was published is compared, copy by copy, with the ledger, the claims, the balances, the"
                    + " dead letters, and what the consumers told.",
            ""
        },
        footer = {
            "",
            "Needs a JDK 17 or newer, Maven, and rabbitmq-server (dev/test installs it) or Docker: servers that are given by an"
                    + " address cannot be killed.",
            "",
            "Exit code 0 only if nothing was lost or doubled, and there is nothing else to complain of. Complaints are lines of"
                    + " their own, and are counted in a line complaints=N. The last line is for scripts:",
            "  chaos seed=S rounds=R faults=F messages=M lost=0 doubled=0 dead_lettered=P expected_poison=P"
        })
final class Chaos implements Callable<Integer> {

    @Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandSpec spec;

    @Mixin
    private final ChaosOptions options = new ChaosOptions();

    @Option(
            names = {"-h", "--help"},
            usageHelp = true,
            description = "Say this.")
    @SuppressWarnings("unused") // picocli looks at it
    private boolean help;

    private Chaos() {}

    public static void main(String[] args) {
        System.exit(commandLine().execute(args));
    }

    static CommandLine commandLine() {
        return ChaosOptions.withNames(new CommandLine(new Chaos()))
                .setOverwrittenOptionsAllowed(
                        true) // dev/chaos says where the logs go, and the caller may say it again.
                .setParameterExceptionHandler((error, args) -> {
                    CommandLine line = error.getCommandLine();
                    line.getErr().println(error.getMessage() + "; see dev/chaos --help");
                    return CommandLine.ExitCode.USAGE;
                });
    }

    @Override
    public Integer call() throws Exception {
        options.contradiction().ifPresent(words -> {
            throw new ParameterException(spec.commandLine(), words);
        });
        Schedule schedule = options.schedule();
        if (options.scheduleOnly()) {
            System.out.print(schedule);
            return CommandLine.ExitCode.OK;
        }
        Verdict verdict = run(schedule);
        verdict.lines().forEach(System.out::println);
        return verdict.isGood() ? CommandLine.ExitCode.OK : CommandLine.ExitCode.SOFTWARE;
    }

    private Verdict run(Schedule schedule) throws Exception {
        Path logs = newFolder();
        ConsumerSetup consumers = options.consumers();
        System.out.printf(
                "Seed %d, %d rounds, %s, dead letters in a %s, maxBatch %s. Logs: %s%n",
                options.seed(),
                schedule.rounds().size(),
                ChaosOptions.name(consumers.variant()),
                ChaosOptions.name(consumers.deadLetters()),
                consumers.maxBatch(),
                logs);
        try (Progress progress = new Progress(logs);
                Site site = Site.open(consumers, options.queue(), logs)) {
            progress.note("%n%s%n%s".formatted(consumers, schedule));
            Rig rig = new Rig(schedule, consumers.variant().goesByPosition(), site, logs, progress);
            Verdict verdict = rig.run();
            System.out.printf("%n%s%n", rig.table());
            verdict.lines().forEach(progress::note);
            return verdict;
        }
    }

    /** Its own even if another run of the seed begins at the same time: what is in there is judged. */
    private Path newFolder() throws IOException {
        String time = LocalDateTime.now(ZoneId.systemDefault()).format(DateTimeFormatter.ofPattern("yyMMdd-HHmmss"));
        Files.createDirectories(options.logs());
        return Files.createTempDirectory(
                options.logs().toAbsolutePath(), "seed-%d-%s-".formatted(options.seed(), time));
    }
}
