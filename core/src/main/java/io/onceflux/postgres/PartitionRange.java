package io.onceflux.postgres;

import io.onceflux.postgres.ClaimPartitions.Found;
import io.r2dbc.spi.Connection;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import reactor.core.publisher.Mono;

/**
 * Which times can be claimed in a table with partitions, as this process has seen it last. What lies outside is looked up again before
 * anything is said of it.
 */
final class PartitionRange {

    private final ClaimTable table;
    private final Buckets buckets;
    private final ClaimPartitions partitions;
    private volatile Instant anyTime;
    private volatile @Nullable Span seen;

    /** @param found has a partition at least */
    PartitionRange(ClaimTable table, Buckets buckets, Found found) {
        this.table = table;
        this.buckets = buckets;
        this.partitions = new ClaimPartitions(table);
        Span span = Span.of(found);
        this.anyTime = span.anyTime();
        this.seen = span;
    }

    private record Span(Instant from, Instant to, Instant now) {

        static Span of(Found found) {
            return new Span(Objects.requireNonNull(found.from()), Objects.requireNonNull(found.to()), found.now());
        }

        /** In the newest, which is there for longest. */
        Instant anyTime() {
            return to.minusSeconds(1);
        }

        boolean has(@Nullable Instant time) {
            return time != null && !time.isBefore(from) && time.isBefore(to);
        }
    }

    /**
     * What may be claimed.
     *
     * @param claims those for which there is a partition
     * @param refused why the others are beyond what is kept, by id
     */
    record Admitted(List<NewClaim> claims, Map<String, String> refused) {}

    /** A time for which there was a partition when they were looked at last. */
    Instant anyTime() {
        return anyTime;
    }

    /** Whether there is a partition for each of these, as far as is known. */
    boolean hasAll(List<NewClaim> claims) {
        Span known = seen;
        return known != null && claims.stream().allMatch(claim -> known.has(claim.time()));
    }

    /** What was known has turned out to be wrong. */
    void forget() {
        seen = null;
    }

    /** Looks at the table if that is needed; {@link MissingPartitionException} where somebody has to make one. */
    Mono<Admitted> admit(Connection inTransaction, List<NewClaim> claims) {
        return hasAll(claims)
                ? Mono.just(new Admitted(claims, Map.of()))
                : partitions.look(inTransaction).map(found -> {
                    if (found.to() == null) {
                        throw new MissingPartitionException(table, "it has none");
                    }
                    Span span = Span.of(found);
                    seen = span;
                    anyTime = span.anyTime();
                    return admit(span, claims);
                });
    }

    private Admitted admit(Span span, List<NewClaim> claims) {
        List<NewClaim> admitted = new ArrayList<>();
        Map<String, String> refused = new LinkedHashMap<>();
        for (NewClaim claim : claims) {
            Instant time = Objects.requireNonNull(claim.time(), "a claim in a partitioned table needs a time");
            if (span.has(time)) {
                admitted.add(claim);
            } else if (time.isBefore(span.from)) {
                refused.put(
                        claim.id(),
                        "the message is of %s, and claims are kept from %s on: if it was applied, its claim is gone"
                                .formatted(time, span.from));
            } else if (time.isAfter(span.now.plus(buckets.ahead()))) {
                refused.put(
                        claim.id(),
                        "the message is of %s, which is more than %s ahead of the server's clock: there is no partition for its claim"
                                .formatted(time, buckets.ahead()));
            } else {
                throw new MissingPartitionException(
                        table, "the last one ends at %s, and the message is of %s".formatted(span.to, time));
            }
        }
        return new Admitted(admitted, refused);
    }
}
