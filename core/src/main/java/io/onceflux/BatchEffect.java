package io.onceflux;

import java.util.List;
import org.reactivestreams.Publisher;
import org.springframework.r2dbc.core.DatabaseClient;

/**
 * What several messages do in the database, once each: a few statements over all of them instead of a few for each.
 *
 * @param <T> the payload
 */
@FunctionalInterface
public interface BatchEffect<T> {

    /**
     * Makes the statements of messages whose claims are fresh. They run in the transaction of these claims, and commit with them or
     * not at all. If they fail, the messages are tried again in halves, until the one at fault stands alone: the list may then be
     * shorter, and a message be in several calls, of which at most one commits.
     *
     * <p>Everything that {@link Effect#apply} says of the thread, the session and the client holds here too.
     *
     * @param payloads the messages, at least one, each key once; those with an equal ordering key stand in the order of their
     *     delivery. The list cannot be changed.
     * @param db a client over the transaction's own connection
     * @return the work; it is subscribed once and runs to its end, whatever it emits. An error rolls everything back.
     */
    Publisher<?> apply(List<T> payloads, DatabaseClient db);
}
