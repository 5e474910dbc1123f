package io.onceflux.chaos.proxy;

import java.io.IOException;
import java.time.Duration;

/** What the server sends passes here on its way to the client, and may be held up or stopped. */
final class Gate {

    private boolean held;
    private boolean shut;
    private boolean somethingWaits;

    synchronized void hold() {
        held = true;
    }

    synchronized void open() {
        held = false;
        notifyAll();
    }

    /** For good: nothing passes any more. */
    synchronized void shut() {
        shut = true;
        notifyAll();
    }

    /** Called with something for the client in hand. Fails once the gate is shut. */
    synchronized void pass() throws IOException, InterruptedException {
        while (held && !shut) {
            somethingWaits = true;
            notifyAll();
            wait();
        }
        somethingWaits = false;
        if (shut) {
            throw new IOException("cut");
        }
    }

    /** Waits until the server has answered. A server that is stalled may never do so: then whether it will is left open. */
    synchronized void awaitAnswer(Duration limit) throws InterruptedException {
        long end = System.nanoTime() + limit.toNanos();
        while (!somethingWaits && !shut) {
            long left = (end - System.nanoTime()) / 1_000_000;
            if (left <= 0) {
                return;
            }
            wait(left);
        }
    }
}
