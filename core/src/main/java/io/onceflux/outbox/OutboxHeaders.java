package io.onceflux.outbox;

import java.util.Map;
import reactor.util.context.ContextView;

/** Headers that are added to the entries of an {@link Outbox}, such as {@code io.onceflux.micrometer.TraceHeaders}. */
@FunctionalInterface
public interface OutboxHeaders {

    /**
     * The further headers of an entry that is being appended. Must not block; what it throws is the effect's failure.
     *
     * @param context the Reactor context of the effect
     */
    Map<String, String> of(OutboxEntry entry, ContextView context);
}
