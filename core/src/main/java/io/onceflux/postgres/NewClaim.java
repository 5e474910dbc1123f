package io.onceflux.postgres;

import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * A claim that is to be written.
 *
 * @param id the message's id
 * @param fingerprint null where there is none, or the table has no column for it
 * @param time when the message came to be, by which the partition is chosen; null where the table has no buckets
 */
public record NewClaim(
        String id, @Nullable Long fingerprint, @Nullable Instant time) {}
