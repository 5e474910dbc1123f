package io.onceflux.services;

/** What PostgreSQL, RabbitMQ and Kafka have in common here: they can be killed, stalled and brought back. */
public abstract class ControlledService implements AutoCloseable {
    private final ServerControl control;

    ControlledService(ServerControl control) {
        this.control = control;
    }

    /**
     * Kills the server with SIGKILL, as a crash would; {@link #restart()} brings it back.
     *
     * @throws UnsupportedOperationException if the server was given by its address
     */
    public void kill() {
        control.kill();
    }

    /** Shuts the server down in good order; {@link #restart()} brings it back. Throws as {@link #kill()} does. */
    public void stop() {
        control.stop();
    }

    /** Starts the server again after {@link #kill()} or {@link #stop()}, on the same port and data, and waits for it. */
    public void restart() {
        control.restart();
    }

    /** Stalls the server: connections stay open and nothing answers, until {@link #thaw()}. */
    public void freeze() {
        control.freeze();
    }

    /** Ends a {@link #freeze()}. */
    public void thaw() {
        control.thaw();
    }

    /** Ends the server and deletes its data; a server given by its address goes on. */
    @Override
    public void close() {
        control.close();
    }
}
