package io.onceflux.services;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;

/** The folder of RabbitMQ's own scripts on this machine. */
record RabbitInstallation(Path sbin) {
    private static final String SERVER = "rabbitmq-server";

    static Optional<RabbitInstallation> find(Map<String, String> env) {
        return Stream.of(home(env), path(env), wellKnown(), debian())
                .flatMap(folders -> folders)
                .filter(RabbitInstallation::hasServer)
                .findFirst()
                .map(RabbitInstallation::new);
    }

    Path script(String name) {
        return sbin.resolve(name);
    }

    private static Stream<Path> home(Map<String, String> env) {
        return Optional.ofNullable(env.get("RABBITMQ_HOME")).stream().map(home -> Path.of(home, "sbin"));
    }

    private static Stream<Path> path(Map<String, String> env) {
        return Stream.of(env.getOrDefault("PATH", "").split(File.pathSeparator))
                .filter(folder -> !folder.isBlank())
                .map(Path::of)
                .filter(RabbitInstallation::hasServer)
                .flatMap(RabbitInstallation::behindLinks);
    }

    private static Stream<Path> wellKnown() {
        return Stream.of("/usr/lib/rabbitmq/bin", "/opt/homebrew/sbin", "/usr/local/sbin")
                .map(Path::of);
    }

    private static Stream<Path> debian() {
        Path versions = Path.of("/usr/lib/rabbitmq/lib");
        if (!Files.isDirectory(versions)) {
            return Stream.empty();
        }
        try (Stream<Path> folders = Files.list(versions)) {
            return folders.map(version -> version.resolve("sbin")).toList().stream();
        } catch (IOException e) {
            return Stream.empty();
        }
    }

    /** Packages put a wrapper on the PATH that changes the user and uses the system's node: not that one. */
    private static Stream<Path> behindLinks(Path folder) {
        try {
            Path server = folder.resolve(SERVER).toRealPath();
            Path real = server.resolveSibling("rabbitmq-env");
            return server.endsWith(SERVER) && Files.exists(real) ? Stream.of(server.getParent()) : Stream.empty();
        } catch (IOException e) {
            return Stream.empty();
        }
    }

    private static boolean hasServer(Path folder) {
        return Files.isExecutable(folder.resolve(SERVER));
    }
}
