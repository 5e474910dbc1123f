package io.onceflux.services;

/** What can be done to a running server. Every method returns when it is done, or throws within a limit. */
interface ServerControl {
    void kill();

    void stop();

    void restart();

    void freeze();

    void thaw();

    void close();
}
