package io.onceflux.chaos;

import java.util.ArrayList;
import java.util.List;

/**
 * What the checker found.
 *
 * @param messages distinct messages that were published
 * @param lost ids of confirmed messages that are neither in the ledger nor, if poison, a dead letter
 * @param doubled ids with more than one row in the ledger
 * @param deadLettered distinct dead letters
 * @param complaints everything else that is not as it should be
 */
record Verdict(
        long seed,
        int rounds,
        long faults,
        int messages,
        List<String> lost,
        List<String> doubled,
        int deadLettered,
        int expectedPoison,
        List<String> complaints) {

    private static final int NAMED = 10;

    boolean isGood() {
        return lost.isEmpty() && doubled.isEmpty() && deadLettered == expectedPoison && complaints.isEmpty();
    }

    /** What a person needs to look further, a line each. */
    List<String> details() {
        List<String> lines = new ArrayList<>(complaints);
        if (!lost.isEmpty()) {
            lines.add("lost: " + some(lost));
        }
        if (!doubled.isEmpty()) {
            lines.add("doubled: " + some(doubled));
        }
        return lines;
    }

    static String some(List<String> ids) {
        return String.join(", ", ids.subList(0, Math.min(NAMED, ids.size())))
                + (ids.size() > NAMED ? " and %d more".formatted(ids.size() - NAMED) : "");
    }

    /** The last line of a run, for scripts. */
    String line() {
        return "chaos seed=%d rounds=%d faults=%d messages=%d lost=%d doubled=%d dead_lettered=%d expected_poison=%d"
                .formatted(seed, rounds, faults, messages, lost.size(), doubled.size(), deadLettered, expectedPoison);
    }
}
