package io.onceflux;

import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * A claim that is in its table.
 *
 * @param consumer who has claimed; null where the table has no column for that
 * @param id the id as it is stored: a long one is hashed, see {@link MessageKey}
 * @param claimedAt when its transaction began; null where the table has no time
 * @param fingerprint of what the message said; null if it was claimed without
 */
public record KeptClaim(
        @Nullable String consumer,
        String id,
        @Nullable Instant claimedAt,
        @Nullable Long fingerprint) {}
