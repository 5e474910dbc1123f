package io.onceflux;

import java.time.Duration;
import java.util.concurrent.TimeoutException;
import reactor.core.publisher.Mono;

/**
 * A time limit for what runs with every message. Reactor's {@code timeout} describes its source for its error message at every
 * subscription; that alone was 15 % of the pipeline's time (docs/decisions/0011).
 */
final class Limits {

    private Limits() {}

    /** The same, but failing with {@link LimitPassedException}, and cancelled, if it has neither emitted nor ended within the limit. */
    static <V> Mono<V> within(Duration limit, Mono<V> source) {
        return new LimitedMono<>(source, limit);
    }

    /** Of its own type, because what is limited may fail with a {@link TimeoutException} of its own. */
    static final class LimitPassedException extends TimeoutException {
        LimitPassedException(Duration limit) {
            super("no answer within " + limit.toMillis() + " ms");
        }
    }
}
