package io.onceflux.chaos;

import io.onceflux.chaos.proxy.Trap;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/** Which kind of fault was injected how often. */
final class Tally {

    private final Map<FaultKind, Integer> struck = new EnumMap<>(FaultKind.class);
    private final Map<FaultKind, List<Trap>> traps = new EnumMap<>(FaultKind.class);

    void struck(FaultKind kind) {
        struck.merge(kind, 1, Integer::sum);
    }

    /** A trap counts once it has sprung. */
    void armed(FaultKind kind, Trap trap) {
        traps.computeIfAbsent(kind, none -> new ArrayList<>()).add(trap);
    }

    /** Faults that took place. */
    long faults() {
        return struck.keySet().stream().mapToLong(this::injected).sum();
    }

    private long injected(FaultKind kind) {
        List<Trap> ofKind = traps.get(kind);
        return ofKind == null
                ? struck.getOrDefault(kind, 0)
                : ofKind.stream().filter(trap -> trap.hits() > 0).count();
    }

    String table() {
        StringBuilder table =
                new StringBuilder("  fault                               injected  connections hit%n".formatted());
        struck.keySet().forEach(kind -> {
            List<Trap> ofKind = traps.get(kind);
            String hits = ofKind == null
                    ? ""
                    : String.valueOf(ofKind.stream().mapToInt(Trap::hits).sum());
            table.append("  %-34s  %8d  %15s%n".formatted(kind.title(), injected(kind), hits));
        });
        return table.toString();
    }
}
