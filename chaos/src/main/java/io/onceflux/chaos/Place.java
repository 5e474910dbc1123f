package io.onceflux.chaos;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeoutException;

/** Where messages wait and dead letters are, as an operator and a producer see it. Blocks. It may fail while the broker is away. */
interface Place {

    /** Where a consumer finds it, by its number; through a proxy of its own where there is one. */
    String address(int consumer);

    /** What it is called at the broker. */
    String name();

    /** How many consumers have it. */
    long consumers() throws IOException, TimeoutException;

    /** Messages that wait or are not acknowledged. May be slow. */
    long backlog() throws IOException, TimeoutException;

    /** All dead letters there. */
    List<Letter> takeDeadLetters() throws IOException, TimeoutException;

    /**
     * A way in for a producer, not through a proxy.
     *
     * @param repeats whether what has no answer may be sent again
     */
    Outlet outlet(boolean repeats);

    /** Where the log of each partition ends that has one, by its number; empty where there are no partitions. */
    Map<Integer, Long> ends() throws IOException, TimeoutException;
}
