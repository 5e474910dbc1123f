package io.onceflux.outbox;

import io.onceflux.postgres.OutboxTable;
import java.util.Set;

/**
 * Told what a {@link Relay} does: for meters. Every method does nothing by default. It is called on the driver's threads, several at the
 * same time, and must not block. What it throws is logged and changes nothing.
 */
public interface RelayListener {

    /**
     * The listener that is told what one relay does; asked for when the relay is built. Default: this one.
     *
     * @param table of the outbox
     * @param kinds that the relay has a target for
     */
    default RelayListener forRelay(String table, Set<String> kinds) {
        return this;
    }

    /** What became of an entry, once that is written down. */
    default void onRelayed(Relayed relayed) {}

    /**
     * How the table is doing, at the start of a run and every 30 seconds. It is asked for only where there is a listener, with a statement that
     * reads all entries that are not sent.
     */
    default void onState(OutboxTable.State state) {}
}
