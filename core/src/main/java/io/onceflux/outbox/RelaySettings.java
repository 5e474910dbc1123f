package io.onceflux.outbox;

import io.onceflux.ShortTransactions;
import io.r2dbc.spi.ConnectionFactory;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What a {@link Relay} was told; {@link Relay.Builder} says what each means. */
record RelaySettings(
        Outbox outbox,
        ShortTransactions database,
        Map<String, Target> targets,
        int workers,
        int batchSize,
        Duration sendLimit,
        Duration lease,
        int maxAttempts,
        Duration minBackoff,
        Duration maxBackoff,
        Duration pollInterval,
        @Nullable Duration keepSent,
        boolean parkedBlocksItsKey,
        @Nullable ConnectionFactory listenOn,
        Consumer<? super Throwable> onError,
        List<RelayListener> listeners) {

    private static final Logger log = LoggerFactory.getLogger(Relay.class);

    RelaySettings {
        targets = Map.copyOf(targets);
        listeners = List.copyOf(listeners);
    }

    /** Tells the user, whose function may fail in its turn. */
    void tell(Throwable error) {
        try {
            onError.accept(error);
        } catch (Throwable e) { // An Error too: it would be the end of the relay.
            log.warn("onError has thrown {} when it was told of", e.toString(), error);
        }
    }

    /** Tells the listeners, which may fail in their turn. */
    void tellAll(Consumer<RelayListener> call) {
        for (RelayListener listener : listeners) {
            try {
                call.accept(listener);
            } catch (Throwable e) { // An Error too: it would be the end of a worker.
                log.warn("a listener of the relay threw; the entry is not affected", e);
            }
        }
    }
}
