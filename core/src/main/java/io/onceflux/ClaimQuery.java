package io.onceflux;

import static io.onceflux.Require.given;

import io.onceflux.postgres.ClaimRows;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/** Which claims to look at. Immutable. */
public final class ClaimQuery {

    private final @Nullable String consumer;
    private final @Nullable String prefix;
    private final @Nullable Instant since;
    private final @Nullable Instant before;

    private ClaimQuery(
            @Nullable String consumer, @Nullable String prefix, @Nullable Instant since, @Nullable Instant before) {
        this.consumer = consumer;
        this.prefix = prefix;
        this.since = since;
        this.before = before;
    }

    /** All claims of the table. */
    public static ClaimQuery all() {
        return new ClaimQuery(null, null, null, null);
    }

    /** Those of one consumer. Without it a prefix is looked for in the whole table. */
    public ClaimQuery ofConsumer(String name) {
        return new ClaimQuery(given("consumer", name), prefix, since, before);
    }

    /** Those whose id, as it is stored, begins so. */
    public ClaimQuery startingWith(String idPrefix) {
        return new ClaimQuery(consumer, given("startingWith", idPrefix), since, before);
    }

    /** Those that were made at this time or later. The table is read for it: there is no index on the time. */
    public ClaimQuery since(Instant time) {
        return new ClaimQuery(consumer, prefix, given("since", time), before);
    }

    /** Those that were made before this time. */
    public ClaimQuery before(Instant time) {
        return new ClaimQuery(consumer, prefix, since, given("before", time));
    }

    ClaimRows.Filter filter() {
        return new ClaimRows.Filter(consumer, prefix, since, before);
    }
}
