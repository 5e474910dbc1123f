package io.onceflux.kafka;

import java.time.Duration;

/** Told how a consumer and its group get along. Called on the consumer's thread. */
interface Watcher {

    /** The group has taken it in, or answers again. */
    void consuming();

    /** The group does not answer, or has thrown it out; it tries again by itself. */
    void lost(String reason, Duration untilNextTry);
}
