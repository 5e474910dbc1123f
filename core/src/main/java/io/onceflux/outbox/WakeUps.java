package io.onceflux.outbox;

import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/** Says that there may be something to do. One that comes while nobody waits is not lost: who waits says what it knew of. */
final class WakeUps {

    private static final Logger log = LoggerFactory.getLogger(WakeUps.class);

    private final AtomicLong count = new AtomicLong();
    private final Sinks.Many<Long> sink = Sinks.many().multicast().directBestEffort();

    /** How many there have been. */
    long count() {
        return count.get();
    }

    /** From any thread. */
    void wake() {
        long now = count.incrementAndGet();
        log.trace("wake-up {}: {}", now, sink.tryEmitNext(now)); // It may fail, where somebody else is just telling.
    }

    /** Completes with the next one after so many. */
    Mono<Long> after(long known) {
        return Flux.merge(sink.asFlux(), Flux.defer(() -> Flux.just(count.get())))
                .filter(now -> now > known)
                .next();
    }
}
