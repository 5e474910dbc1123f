package io.onceflux.chaos;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import io.onceflux.chaos.consumer.Told;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/** What the consumers have told, read from their logs when they have ended. */
final class ConsumerLogs {

    private ConsumerLogs() {}

    /** Process by process. */
    static List<List<Told>> read(Path folder) throws IOException {
        List<List<Told>> processes = new ArrayList<>();
        try (DirectoryStream<Path> logs = Files.newDirectoryStream(folder, "consumer-*.log")) {
            for (Path log : logs) {
                try (Stream<String> lines = Files.lines(log, ISO_8859_1)) {
                    processes.add(
                            lines.map(Told::parse).flatMap(Optional::stream).toList());
                }
            }
        }
        return processes;
    }
}
