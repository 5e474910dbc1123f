package io.onceflux.chaos;

import io.onceflux.chaos.consumer.Copy;
import java.util.List;

/** A producer's way into a {@link Place}. Blocks. */
interface Outlet extends AutoCloseable {

    /**
     * Sends copies of messages, in this order.
     *
     * @param copies one for each message
     * @return whether the broker has taken responsibility for all of them; if not, some may be there all the same
     */
    boolean send(List<Message> messages, List<Copy> copies) throws InterruptedException;

    @Override
    void close();
}
