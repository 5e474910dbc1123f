package io.onceflux.postgres;

import io.onceflux.postgres.ClaimPartitions.Found;
import io.onceflux.postgres.ClaimPartitions.Gap;
import io.r2dbc.spi.Connection;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
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
    private final Set<Instant> doubted = ConcurrentHashMap.newKeySet();
    private volatile Instant anyTime;
    private volatile @Nullable Span seen;

    /** @param found has a partition at least */
    PartitionRange(ClaimTable table, Buckets buckets, Found found) {
        this.table = table;
        this.buckets = buckets;
        this.partitions = new ClaimPartitions(table);
        Span span = span(found);
        this.anyTime = span.anyTime();
        this.seen = span;
    }

    private Span span(Found found) {
        return new Span(
                found,
                Objects.requireNonNull(found.from()),
                Objects.requireNonNull(found.to()),
                partitions.gaps(found));
    }

    private record Span(Found found, Instant from, Instant to, List<Gap> gaps) {

        /** In the newest, which is there for longest. */
        Instant anyTime() {
            return to.minusSeconds(1);
        }

        Optional<Gap> gapAt(Instant bucket) {
            return gaps.stream().filter(gap -> gap.has(bucket)).findFirst();
        }

        boolean has(Instant bucket) {
            return !bucket.isBefore(from)
                    && bucket.isBefore(to)
                    && (gaps.isEmpty() || gapAt(bucket).isEmpty());
        }
    }

    /**
     * What may be claimed.
     *
     * @param claims those for which there is a partition
     * @param refused why the others are beyond what is kept, by id
     * @param looked whether the table was looked at for it
     */
    record Admitted(List<NewClaim> claims, Map<String, String> refused, boolean looked) {}

    /** A time for which there was a partition when they were looked at last. */
    Instant anyTime() {
        return anyTime;
    }

    /** Whether there is a partition for each of these, as far as is known. */
    boolean hasAll(List<NewClaim> claims) {
        Span known = seen;
        return known != null
                && claims.stream().allMatch(claim -> {
                    Instant bucket = bucket(claim);
                    return known.has(bucket) && !doubted.contains(bucket);
                });
    }

    private Instant bucket(NewClaim claim) {
        return buckets.width()
                .floor(Objects.requireNonNull(claim.time(), "a claim in a partitioned table needs a time"));
    }

    /**
     * The server has refused claims for which there seemed to be a partition: what was known was wrong. If they were looked up for this, there
     * is one in the table, and claims all the same do not get into it; then they are looked up each time.
     */
    MissingPartitionException refused(List<NewClaim> claims, boolean looked, Throwable error) {
        seen = null;
        if (!looked) {
            return MissingPartitionException.unexplained(table);
        }
        claims.forEach(claim -> doubted.add(bucket(claim)));
        return MissingPartitionException.forClaim(
                table, "the server has refused it, although there seems to be one (%s)".formatted(error.getMessage()));
    }

    /** Looks at the table if that is needed; {@link MissingPartitionException} where somebody has to make one. */
    Mono<Admitted> admit(Connection inTransaction, List<NewClaim> claims) {
        return hasAll(claims)
                ? Mono.just(new Admitted(claims, Map.of(), false))
                : partitions.look(inTransaction).map(found -> {
                    if (found.to() == null) {
                        throw missing("it has none. Does its Retention run?");
                    }
                    Span span = span(found);
                    seen = span;
                    anyTime = span.anyTime();
                    return admit(span, claims);
                });
    }

    private Admitted admit(Span span, List<NewClaim> claims) {
        List<NewClaim> admitted = new ArrayList<>();
        Map<String, String> refused = new LinkedHashMap<>();
        for (NewClaim claim : claims) {
            Instant bucket = bucket(claim);
            Instant time = Objects.requireNonNull(claim.time());
            if (span.has(bucket)) {
                admitted.add(claim);
            } else if (bucket.isBefore(span.from)) {
                refused.put(
                        claim.id(),
                        "the message is of %s, and claims are kept from %s on: if it was applied, its claim is gone"
                                .formatted(time, span.from));
            } else if (bucket.isBefore(span.to)) {
                throw missing("the message is of %s, and %s".formatted(time, wordsOfGap(span, bucket)));
            } else if (time.isAfter(span.found.now().plus(buckets.ahead()))) {
                refused.put(
                        claim.id(),
                        "the message is of %s, which is more than %s ahead of the server's clock: there is no partition for its claim"
                                .formatted(time, buckets.ahead()));
            } else {
                throw missing("the last one ends at %s, and the message is of %s. Does its Retention run?"
                        .formatted(span.to, time));
            }
        }
        return new Admitted(admitted, refused, true);
    }

    private String wordsOfGap(Span span, Instant bucket) {
        return partitions.wordsOf(span.found, span.gapAt(bucket).orElseThrow());
    }

    private MissingPartitionException missing(String why) {
        return MissingPartitionException.forClaim(table, why);
    }
}
