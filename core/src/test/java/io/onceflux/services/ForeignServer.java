package io.onceflux.services;

/** A server that somebody else runs, known by its address: it is used, and never killed or stopped. */
record ForeignServer(String server, String addressVariable) implements ServerControl {

    @Override
    public void kill() {
        throw refusal("killed");
    }

    @Override
    public void stop() {
        throw refusal("stopped");
    }

    @Override
    public void restart() {
        throw refusal("restarted");
    }

    @Override
    public void freeze() {
        throw refusal("frozen");
    }

    @Override
    public void thaw() {
        throw refusal("thawed");
    }

    @Override
    public void close() {
        // It was there before, and stays.
    }

    UnsupportedOperationException refusal(String done) {
        return new UnsupportedOperationException("The %s of %s cannot be %s from here: unset %s or set %s=local."
                .formatted(server, addressVariable, done, addressVariable, ServiceMode.VARIABLE));
    }
}
