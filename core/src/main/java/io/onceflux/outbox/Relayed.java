package io.onceflux.outbox;

import java.time.Duration;

/** What became of an entry, this time. */
public sealed interface Relayed {

    /** The entry. */
    OutboxMessage message();

    /** It has arrived, and that is written down. */
    record Sent(OutboxMessage message) implements Relayed {}

    /**
     * It could not be sent. What has the same key waits behind it.
     *
     * @param untilNextTry when it is sent again
     */
    record Failed(OutboxMessage message, Throwable error, Duration untilNextTry) implements Relayed {}

    /** It is not sent any more until somebody resumes it: {@link Outbox#resume}. The reason is kept with it. */
    record Parked(OutboxMessage message, Throwable error) implements Relayed {}
}
