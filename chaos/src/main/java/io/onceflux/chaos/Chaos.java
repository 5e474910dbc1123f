package io.onceflux.chaos;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;

/**
 * Lets consumers, servers and connections fail by a seeded schedule while messages flow, and checks that every message had
 * its effect once. Run it with {@code dev/chaos}.
 *
 * <p>Exit code: 0 if nothing was lost or doubled and everything else is as it should be, 1 if not or if the run failed, 2 for
 * an option that it does not know.
 */
final class Chaos {

    private Chaos() {}

    public static void main(String[] args) {
        ChaosOptions options;
        try {
            options = ChaosOptions.parse(args);
        } catch (IllegalArgumentException e) {
            System.err.println(e.getMessage() + "; see dev/chaos --help");
            System.exit(2);
            return;
        }
        Schedule schedule = Schedule.of(options.seed(), options.rounds(), options.mix());
        if (options.scheduleOnly()) {
            System.out.print(schedule);
            return;
        }
        try {
            Verdict verdict = run(options, schedule);
            verdict.lines().forEach(System.out::println);
            System.exit(verdict.isGood() ? 0 : 1);
        } catch (Exception | Error e) {
            e.printStackTrace();
            System.exit(1);
        }
    }

    private static Verdict run(ChaosOptions options, Schedule schedule) throws Exception {
        String time = LocalDateTime.now(ZoneId.systemDefault()).format(DateTimeFormatter.ofPattern("yyMMdd-HHmmss"));
        Files.createDirectories(options.logs());
        // Its own even if another run of the seed begins at the same time: what is in there is judged.
        Path logs =
                Files.createTempDirectory(options.logs().toAbsolutePath(), "seed-%d-%s-".formatted(options.seed(), time));
        System.out.printf("Seed %d, %d rounds. Logs: %s%n", options.seed(), options.rounds(), logs);
        try (Progress progress = new Progress(logs);
                Site site = Site.open(options.consumer(), options.queue(), logs)) {
            progress.note("%n%s".formatted(schedule));
            Rig rig = new Rig(schedule, site, logs, progress);
            Verdict verdict = rig.run();
            System.out.printf("%n%s%n", rig.table());
            verdict.lines().forEach(progress::note);
            return verdict;
        }
    }
}
