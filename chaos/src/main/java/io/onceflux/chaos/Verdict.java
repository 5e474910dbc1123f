package io.onceflux.chaos;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.stream.Collectors;

/**
 * What the checker found.
 *
 * @param messages distinct messages that were published
 * @param lost ids of messages that are neither in the ledger nor, if poison, a dead letter although they were confirmed, and of
 *     those whose loss was made good by something else
 * @param doubled ids with more than one row in the ledger
 * @param deadLettered distinct dead letters
 * @param complaints everything else that is not as it should be
 * @param notes how much was looked at
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
        List<String> complaints,
        List<String> notes) {

    private static final int NAMED = 10;

    boolean isGood() {
        return lost.isEmpty() && doubled.isEmpty() && deadLettered == expectedPoison && complaints.isEmpty();
    }

    /** The end of a run's output: what a person needs to look further, and for scripts the number of complaints and the last line. */
    List<String> lines() {
        List<String> lines = new ArrayList<>();
        notes.forEach(note -> lines.add("  " + note));
        complaints.forEach(complaint -> lines.add("  " + complaint));
        if (!lost.isEmpty()) {
            lines.add("  lost: " + some(lost));
        }
        if (!doubled.isEmpty()) {
            lines.add("  doubled: " + some(doubled));
        }
        if (!complaints.isEmpty()) {
            lines.add("complaints=" + complaints.size());
        }
        lines.add(lastLine());
        return lines;
    }

    static String some(Collection<?> found) {
        return found.stream().limit(NAMED).map(String::valueOf).collect(Collectors.joining(", "))
                + (found.size() > NAMED ? " and %d more".formatted(found.size() - NAMED) : "");
    }

    private String lastLine() {
        return "chaos seed=%d rounds=%d faults=%d messages=%d lost=%d doubled=%d dead_lettered=%d expected_poison=%d"
                .formatted(seed, rounds, faults, messages, lost.size(), doubled.size(), deadLettered, expectedPoison);
    }
}
