package io.onceflux.benchmarks.variant;

import io.onceflux.Claims;
import io.onceflux.MessageKey;
import io.r2dbc.spi.Connection;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;

/**
 * Claims in an array of this process: a key is known until another takes its slot, so that memory does not grow. The answer comes
 * on an event loop, as a driver's does; whoever claims has gone on meanwhile.
 */
final class MemoryClaims implements Claims {

    private static final int SLOTS = 1 << 16;

    private final AtomicReferenceArray<@Nullable MessageKey> slots = new AtomicReferenceArray<>(SLOTS);
    private final Scheduler eventLoops;

    MemoryClaims(Scheduler eventLoops) {
        this.eventLoops = eventLoops;
    }

    @Override
    public Mono<List<String>> verify(Connection connection, String consumer) {
        return Mono.just(List.of());
    }

    @Override
    public Mono<Claimed> claim(Connection inTransaction, List<Claim> claims, Duration lockTimeout) {
        return Mono.fromSupplier(() -> new Claimed(freshOf(claims))).subscribeOn(eventLoops);
    }

    private Set<MessageKey> freshOf(List<Claim> claims) {
        if (claims.size() == 1) {
            MessageKey key = claims.get(0).key();
            return isFresh(key) ? Set.of(key) : Set.of();
        }
        Set<MessageKey> fresh = new HashSet<>(claims.size() * 2);
        for (Claim claim : claims) {
            MessageKey key = claim.key();
            if (isFresh(key)) {
                fresh.add(key);
            }
        }
        return fresh;
    }

    private boolean isFresh(MessageKey key) {
        int hash = key.hashCode();
        return !key.equals(slots.getAndSet((hash ^ (hash >>> 16)) & (SLOTS - 1), key));
    }

    @Override
    public String toString() {
        return "memory";
    }
}
