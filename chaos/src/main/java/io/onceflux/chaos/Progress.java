package io.onceflux.chaos;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalTime;
import java.time.ZoneId;
import java.time.temporal.ChronoUnit;
import java.util.Locale;

/** Says on stdout what happens, and writes it down in more detail beside the consumers' logs, with the time of day as there. */
final class Progress implements AutoCloseable {

    private final long start = System.nanoTime();
    private final PrintWriter journal;

    Progress(Path logs) {
        try {
            this.journal = new PrintWriter(Files.newBufferedWriter(logs.resolve("rig.log")), true);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** For people who watch, and for the journal. */
    void say(String text, Object... figures) {
        String line = String.format(Locale.ROOT, text, figures);
        System.out.printf(Locale.ROOT, "  %6.1f s  %s%n", (System.nanoTime() - start) / 1e9, line);
        note(line);
    }

    /** For the journal only. */
    void note(String line) {
        journal.println(LocalTime.now(ZoneId.systemDefault()).truncatedTo(ChronoUnit.MILLIS) + " " + line);
    }

    @Override
    public void close() {
        journal.close();
    }
}
