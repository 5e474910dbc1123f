package io.onceflux.micrometer;

import io.onceflux.Outcome;
import java.util.List;

/** An outcome as a tag. */
final class OutcomeName {

    static final List<String> ALL = List.of("applied", "duplicate", "stale", "conflict", "failed");

    private OutcomeName() {}

    static String of(Outcome outcome) {
        if (outcome instanceof Outcome.Applied) {
            return "applied";
        } else if (outcome instanceof Outcome.Duplicate) {
            return "duplicate";
        } else if (outcome instanceof Outcome.Stale) {
            return "stale";
        } else if (outcome instanceof Outcome.Conflict) {
            return "conflict";
        }
        return "failed";
    }
}
