package io.onceflux.services;

import com.github.dockerjava.api.DockerClient;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.Map;
import java.util.function.BooleanSupplier;
import org.testcontainers.DockerClientFactory;
import org.testcontainers.containers.GenericContainer;

/** A server in a container of ours; its port on the host is fixed, so that it comes back where its clients look. */
final class ContainerServer implements ServerControl {
    private static final Duration LIMIT = Duration.ofSeconds(60);

    private final GenericContainer<?> container;
    private final BooleanSupplier answers;

    private ContainerServer(GenericContainer<?> container, BooleanSupplier answers) {
        this.container = container;
        this.answers = answers;
    }

    static boolean dockerAnswers() {
        return DockerClientFactory.instance().isDockerAvailable();
    }

    static String host() {
        return DockerClientFactory.instance().dockerHostIpAddress();
    }

    /** Starts the container with its port bound to the given one, on loopback where Docker is on this machine. */
    static ContainerServer start(GenericContainer<?> container, int hostPort, int port, BooleanSupplier answers) {
        return start(container, Map.of(hostPort, port), answers);
    }

    /** As above, with several ports: of the host, to that of the container. */
    static ContainerServer start(GenericContainer<?> container, Map<Integer, Integer> ports, BooleanSupplier answers) {
        String bindTo = host().equals("localhost") ? "127.0.0.1:" : "";
        container.setPortBindings(ports.entrySet().stream()
                .map(bound -> bindTo + bound.getKey() + ":" + bound.getValue())
                .toList());
        container.start();
        ContainerServer server = new ContainerServer(container, answers);
        server.awaitAnswer();
        return server;
    }

    /** Runs a command inside the container and returns what it printed. */
    String run(String... command) {
        try {
            var result = container.execInContainer(command);
            if (result.getExitCode() != 0) {
                throw new IllegalStateException(
                        command[0] + " ended with " + result.getExitCode() + ": " + result.getStderr());
            }
            return result.getStdout();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw Waiting.interrupted(e);
        }
    }

    @Override
    public void kill() {
        docker().killContainerCmd(container.getContainerId()).exec();
        Waiting.until("the killed container is down", LIMIT, () -> !container.isRunning());
    }

    @Override
    public void stop() {
        docker().stopContainerCmd(container.getContainerId()).exec();
    }

    @Override
    public void restart() {
        docker().startContainerCmd(container.getContainerId()).exec();
        awaitAnswer();
    }

    @Override
    public void freeze() {
        docker().pauseContainerCmd(container.getContainerId()).exec();
    }

    @Override
    public void thaw() {
        docker().unpauseContainerCmd(container.getContainerId()).exec();
    }

    @Override
    public void close() {
        container.stop();
    }

    private void awaitAnswer() {
        Waiting.until("the server in " + container.getDockerImageName() + " answers", LIMIT, answers);
    }

    private static DockerClient docker() {
        return DockerClientFactory.instance().client();
    }
}
