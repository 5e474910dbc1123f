package io.onceflux.benchmarks.turns;

import io.onceflux.benchmarks.variant.Case;
import java.io.IOException;
import java.io.Reader;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;

/** What a case had to report in bytes, a file for each. */
public final class Sizes {

    private final Path folder;

    public Sizes(Path folder) {
        this.folder = folder;
    }

    void keep(Case what, Map<String, Long> sizes) throws IOException {
        if (sizes.isEmpty()) {
            return;
        }
        Files.createDirectories(folder);
        Properties properties = new Properties();
        sizes.forEach((name, bytes) -> properties.setProperty(name, bytes.toString()));
        try (Writer file = Files.newBufferedWriter(file(what))) {
            properties.store(file, what.toString());
        }
    }

    /** Empty if there was nothing to report. */
    public Map<String, Long> of(Case what) throws IOException {
        Map<String, Long> sizes = new TreeMap<>();
        if (Files.exists(file(what))) {
            Properties properties = new Properties();
            try (Reader file = Files.newBufferedReader(file(what))) {
                properties.load(file);
            }
            properties.forEach((name, bytes) -> sizes.put((String) name, Long.valueOf((String) bytes)));
        }
        return sizes;
    }

    private Path file(Case what) {
        return folder.resolve("sizes-" + what.toString().replace('/', '.') + ".properties");
    }
}
