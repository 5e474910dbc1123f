package io.onceflux.outbox;

import io.onceflux.PermanentFailure;
import org.reactivestreams.Publisher;

/** Where entries of a kind are sent: a broker, a service. */
@FunctionalInterface
public interface Target {

    /**
     * Sends an entry. It may be sent again, also after it has arrived: the receiver tells by {@link OutboxMessage#idempotencyKey}.
     *
     * <p>It must not block: it is called on a thread of the relay's database driver, or the one on which the entry before it arrived. Entries with
     * different keys are sent side by side.
     *
     * @return completes when it has arrived for certain, whatever it emits before; an error if not, after which it is sent again, or parked
     *     at once for {@link PermanentFailure}
     */
    Publisher<?> send(OutboxMessage message);
}
